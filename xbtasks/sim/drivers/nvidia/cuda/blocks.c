#include "blocks.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct block *blocks;

size_t cuda_pages(size_t size)
{
    return (size + CUDA_PAGE - 1) / CUDA_PAGE * CUDA_PAGE;
}

struct block *block_add(struct block fresh)
{
    struct block *block = malloc(sizeof *block);

    if (block == NULL)
        return NULL;
    *block = fresh;
    block->next = blocks;
    blocks = block;
    return block;
}

struct block *block_at(uint64_t address)
{
    struct block *block = blocks;

    while (block != NULL && block->address != address)
        block = block->next;
    return block;
}

struct block *block_around(uint64_t address)
{
    struct block *block = blocks;

    while (block != NULL &&
           (block->kind == BLOCK_PHYSICAL || address < block->address || address - block->address >= block->size))
        block = block->next;
    return block;
}

void block_drop(struct block *block)
{
    struct block **link = &blocks;

    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    if (block->held > 0)
        node_tell(NULL, "give\t%u\t%zu", cuda_device(block->device)->card.index, block->held);
    if (block->kind != BLOCK_PHYSICAL && block->kind != BLOCK_REGISTERED)
        address_space_free(block->address, block->size);
    free(block);
}

void cuda_free_all(CUcontext context)
{
    struct block *next;

    for (struct block *block = blocks; block != NULL; block = next) {
        next = block->next;
        if (block->context == context)
            block_drop(block);
    }
}

uint64_t address_space(size_t size)
{
    void *place = mmap(NULL, cuda_pages(size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return place == MAP_FAILED ? 0 : (uint64_t)(uintptr_t)place;
}

void address_space_free(uint64_t address, size_t size)
{
    munmap((void *)(uintptr_t)address, cuda_pages(size));
}

int address_space_open(uint64_t address, size_t size)
{
    uint64_t first = address / 4096 * 4096;

    return mprotect((void *)(uintptr_t)first, address + size - first, PROT_READ | PROT_WRITE) == 0;
}
