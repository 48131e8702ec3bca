/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All of engine/. */
#ifndef XCP_H
#define XCP_H

#include "options.h"
#include "policer.h"
#include "receiver.h"
#include "router.h"
#include "sender.h"

#ifndef __bpf__ /* no kernel program has these yet */
#include "robust.h"
#include "robust_sender.h"
#endif

#endif
