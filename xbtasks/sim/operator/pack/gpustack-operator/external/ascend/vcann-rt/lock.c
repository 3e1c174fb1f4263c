#define _DEFAULT_SOURCE
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define LOCK_FOLDER "/run/enpu/vcann-rt/"
#define LOCK_FILE LOCK_FOLDER "memctl.lock"

int lock_prepare(void)
{
    static const char *const folders[] = {"/run/enpu", LOCK_FOLDER};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (mkdir(folders[i], 0750) != 0 && errno != EEXIST) {
            LOG_ERROR("create %s failed, err is %s.", LOCK_FOLDER, strerror(errno));
            return 1;
        }
    LOG_INFO("create %s success", LOCK_FOLDER);
    return 0;
}

/* The file has no permission bits: only root opens one that is there. */
int lock_enter(void)
{
    int file = open(LOCK_FILE, O_CREAT | O_RDONLY | O_CLOEXEC, 0);

    if (file < 0) {
        LOG_ERROR("file_lock_create: open file failed, path: %s", LOCK_FILE);
        return -1;
    }
    while (flock(file, LOCK_EX) != 0)
        if (errno != EINTR) {
            LOG_ERROR("lock failed, fd %d, errno %s", file, strerror(errno));
            close(file);
            return -1;
        }
    return file;
}

void lock_leave(int held)
{
    close(held);
}
