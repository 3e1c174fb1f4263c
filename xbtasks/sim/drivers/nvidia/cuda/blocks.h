/* The table of what was allocated: every pointer or handle that the library has given out. */
#ifndef SIM_CUDA_BLOCKS_H
#define SIM_CUDA_BLOCKS_H

#include "state.h"

enum block_kind {
    BLOCK_DEVICE,
    BLOCK_MANAGED,
    BLOCK_POOL,
    BLOCK_HOST,
    BLOCK_REGISTERED,
    BLOCK_RESERVED,
    BLOCK_PHYSICAL,
};

struct block {
    uint64_t address; /* of a BLOCK_PHYSICAL: its handle */
    size_t size;      /* as asked for */
    size_t held;      /* of the card's memory: whole pages */
    enum block_kind kind;
    CUcontext context; /* goes with it; NULL: with the process */
    CUmemoryPool pool;
    int maps, released; /* BLOCK_PHYSICAL: lives until it is released and mapped nowhere */
    CUdevice device;
    struct block *next;
};

/* The card's memory is handed out in pages of this size. */
enum { CUDA_PAGE = 2 << 20 };
size_t cuda_pages(size_t size);

/* The lock is held for all of these. */

/* Adds a block; NULL where the process itself has no memory left. */
struct block *block_add(struct block fresh);

/* The block with that address, or the one that holds it. */
struct block *block_at(uint64_t address);
struct block *block_around(uint64_t address);

/* Takes a block out of the table; frees its address space and gives what it held back to the card. */
void block_drop(struct block *block);

/* Address space for that many bytes, with nothing behind it until something is written there; 0 if there is none. */
uint64_t address_space(size_t size);
void address_space_free(uint64_t address, size_t size);

/* Makes what is copied or set in the card's memory readable and writable for this library. */
int address_space_open(uint64_t address, size_t size);

#endif
