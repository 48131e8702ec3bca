/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All of engine/. */
#ifndef XCP_H
#define XCP_H

#include "options.h"
#include "policer.h"
#include "receiver.h"
#include "router.h"
#include "sender.h"

/* Who has them in a kernel program includes them there: parts of them are functions that are not
 * static (XCP_PART), which would be in every program's object. */
#ifndef __bpf__
#include "robust.h"
#include "robust_sender.h"
#endif

#endif
