/*
 * What this kernel holds of BPF: a line for each program, map and link, with its kind's number and
 * its name. A guest so needs no bpftool, which some distributions have for their own kernel only.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long bpf(int command, union bpf_attr *attr) {
    return syscall(__NR_bpf, command, attr, sizeof *attr);
}

/* How one kind of object is listed. */
struct kind {
    const char *what;
    int next;
    int open;
};

static const struct kind kinds[] = {
    {"program", BPF_PROG_GET_NEXT_ID, BPF_PROG_GET_FD_BY_ID},
    {"map", BPF_MAP_GET_NEXT_ID, BPF_MAP_GET_FD_BY_ID},
    {"link", BPF_LINK_GET_NEXT_ID, BPF_LINK_GET_FD_BY_ID},
};

static void tell(const struct kind *kind, int fd) {
    union {
        struct bpf_prog_info program;
        struct bpf_map_info map;
        struct bpf_link_info link;
    } info;
    union bpf_attr attr;
    memset(&info, 0, sizeof info);
    memset(&attr, 0, sizeof attr);
    attr.info.bpf_fd = (unsigned)fd;
    attr.info.info_len = sizeof info;
    attr.info.info = (unsigned long)&info;
    if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
        printf("%s: %s\n", kind->what, strerror(errno));
    else if (kind->open == BPF_PROG_GET_FD_BY_ID)
        printf("program %u %s\n", info.program.type, info.program.name);
    else if (kind->open == BPF_MAP_GET_FD_BY_ID)
        printf("map %u %s\n", info.map.type, info.map.name);
    else
        printf("link %u\n", info.link.type);
}

int main(void) {
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        union bpf_attr attr;
        unsigned id = 0;
        for (;;) {
            memset(&attr, 0, sizeof attr);
            attr.start_id = id;
            if (bpf(kinds[k].next, &attr))
                break;
            id = attr.next_id;
            memset(&attr, 0, sizeof attr);
            attr.prog_id = id;
            long fd = bpf(kinds[k].open, &attr);
            /* It went meanwhile. */
            if (fd < 0)
                continue;
            tell(&kinds[k], (int)fd);
            close((int)fd);
        }
        if (errno != ENOENT) {
            fprintf(stderr, "bpf-objects: %ss: %s\n", kinds[k].what, strerror(errno));
            return 1;
        }
    }
    return 0;
}
