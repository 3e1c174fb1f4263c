/* ACL: what an application calls. Each function forwards to one with Impl behind its name, which calls the runtime. */
#ifndef SIM_ACL_H
#define SIM_ACL_H

#include <stddef.h>
#include <stdint.h>

#define ACL_API __attribute__((visibility("default")))

typedef int aclError;

enum {
    ACL_SUCCESS = 0,
    ACL_ERROR_INVALID_PARAM = 100000,
    ACL_ERROR_UNINITIALIZE = 100001,
    ACL_ERROR_REPEAT_INITIALIZE = 100002,
};

/* Memory is given with this many bytes behind it, and in multiples of it. */
enum { ACL_ALIGNMENT = 32 };

#endif
