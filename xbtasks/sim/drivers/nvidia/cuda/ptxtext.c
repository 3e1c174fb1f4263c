#include "ptxtext.h"

#include <stdlib.h>
#include <string.h>

char *ptx_without_comments(const char *text)
{
    char *copy = malloc(strlen(text) + 1), *to = copy;

    while (copy != NULL && *text != '\0') {
        if (text[0] == '/' && text[1] == '/') {
            text += strcspn(text, "\n");
        } else if (text[0] == '/' && text[1] == '*') {
            const char *end = strstr(text + 2, "*/");

            text = end == NULL ? text + strlen(text) : end + 2;
        } else {
            *to++ = *text++;
        }
    }
    if (copy != NULL)
        *to = '\0';
    return copy;
}

const char *ptx_skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

size_t ptx_name_length(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%.");
}

const char *ptx_entry(const char *text, const char *name)
{
    for (const char *at = strstr(text, ".entry"); at != NULL; at = strstr(at, ".entry")) {
        at = ptx_skip_blanks(at + strlen(".entry"));
        if (ptx_name_length(at) == strlen(name) && strncmp(at, name, strlen(name)) == 0)
            return at + strlen(name);
    }
    return NULL;
}

const char *ptx_block_end(const char *open)
{
    int depth = 0;

    for (; *open != '\0'; open++) {
        depth += (*open == '{') - (*open == '}');
        if (depth == 0)
            return open;
    }
    return NULL;
}
