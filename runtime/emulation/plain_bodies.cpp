// Every plain body of the microkernels, compiled once, without hooks. Emitted text that was compiled for emulation calls them.
#define ACU_EMU 1
#define ACU_PLAIN 1
#define ACU_WARP 32  // for text that both see; plain bodies ask emu::warp_width()
#include "runtime/emulation/plain.h"

#include "microkernels/common/device.cuh"
#include "microkernels/common/group.cuh"
#include "microkernels/common/copy.cuh"
#include "microkernels/common/async.cuh"
#include "microkernels/common/cluster.cuh"
#include "microkernels/common/ring.cuh"
#include "microkernels/common/roles.cuh"
#include "microkernels/common/reduce.cuh"
#include "microkernels/common/scan.cuh"
#include "microkernels/common/online.cuh"
#include "microkernels/common/swizzle.cuh"
#include "microkernels/common/operand.cuh"
#include "microkernels/gfx90a/mfma.cuh"
#include "microkernels/sm70/quads.cuh"
#include "microkernels/sm80/mma.cuh"
#include "microkernels/sm90/tensor_copy.cuh"
#include "microkernels/sm90/multicast.cuh"
#include "microkernels/sm90/registers.cuh"
#include "microkernels/sm90/tensor_store.cuh"
#include "microkernels/sm90/wgmma.cuh"
#include "microkernels/common/pairs.cuh"
#include "microkernels/sm90/wgmma_rows.cuh"
