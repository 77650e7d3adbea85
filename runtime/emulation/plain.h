#pragma once
// What the plain body of a microkernel may use besides the words of shim.h. plain_bodies.cpp includes this before the .cuh files, which must not include
// it themselves (a .cuh file includes nothing of the runtime). The functions are defined in services_*.cpp.
#include "runtime/emulation/shim.h"

namespace emu {

/// The place in the emitted text that called the plain body: give it to every function that takes a site.
#define EMU_SITE __builtin_return_address(0)

/// All lanes of `mask` meet; the last one runs f over the lanes' arguments (null where a lane does not exist). Orders no memory.
void warp_meet(const char* op, uint64_t mask, void* mine, void (*f)(void* const* lanes), const void* site);
int lane();
int warp_width();  ///< 32 or 64

/// `bar.sync` (wait) and `bar.arrive` of a numbered barrier, for `threads` threads.
void named_barrier(int id, int threads, bool wait, const void* site);
/// The whole block, from within a plain body.
void block_barrier_at(const void* site);
void warp_sync_at(uint64_t mask, const void* site);

/// cp.async: `src_bytes` bytes and then zeros up to `bytes`; lands when the thread waits for its group.
void async_copy(uint32_t dst, const void* src, uint32_t bytes, uint32_t src_bytes, const void* site);
void async_arrive(uint32_t bar, const void* site);  ///< an arrival when the copies of this thread so far have landed
void async_commit();
void async_wait(int pending);  ///< lands all but the `pending` newest groups

// mbarriers, and copies by the copy engine, which land as late as they can (or, under a seed, at any time)
void mbar_init(uint32_t bar, uint32_t count);
void mbar_end(uint32_t bar, const void* site);  ///< nobody may wait there
void mbar_arrive(uint32_t bar, uint32_t expect_bytes, const void* site);
void mbar_expect(uint32_t bar, uint32_t bytes, const void* site);  ///< expect_tx without an arrival
void mbar_wait(uint32_t bar, uint32_t parity, const void* site);
bool mbar_test(uint32_t bar, uint32_t parity, const void* site);   ///< try_wait: another thread runs first when it answers no
void tensor_load(uint32_t dst, const acu::TensorMap* m, int c0, int c1, uint32_t bar, uint32_t cta_mask, const void* site);
void tensor_load_nd(uint32_t dst, const acu::TensorMap* m, const int* coordinates, uint32_t bar, uint32_t cta_mask, const void* site);
/// The box goes from shared memory to the tensor, as far as it lies inside; nobody may write where it stands until the thread waits for that.
void tensor_store_nd(const acu::TensorMap* m, const int* coordinates, uint32_t src, const void* site);
void tensor_stores_read();
/// cp.async.bulk from global to shared memory, without a map.
void bulk_load(uint32_t dst, const void* src, uint32_t bytes, uint32_t bar, const void* site);
void proxy_fence();  ///< fence.proxy.async

uint32_t cluster_rank();
uint32_t cluster_size();
uint32_t cluster_address(uint32_t local, uint32_t rank);  ///< mapa
void cluster_barrier(const void* site);

// wgmma: the 128 threads of a warpgroup meet at issue; tile(…) runs when the group is waited for, once a warp
struct WgmmaOp {
    uint64_t a, b;  // descriptors
    int n;
    int scale_d;
    int type = 0;  // whatever the two functions below agree on
    bool operator==(const WgmmaOp&) const = default;
};
struct Span { uint32_t offset, bytes; };                         // of the block's shared memory
using WgmmaSpans = void (*)(const WgmmaOp&, Span* out, int* n);  // the pieces that it reads, at most 4096
using WgmmaTile = void (*)(const WgmmaOp&, int warp_in_group, const unsigned char* shared, float* const* d);
void wgmma_issue(float* d, const WgmmaOp&, WgmmaSpans, WgmmaTile, const void* site);
using WgmmaRowsTile = void (*)(const WgmmaOp&, int warp_in_group, const unsigned char* shared, float* const* d, const unsigned* const* a);    // four words of each lane
void wgmma_issue_rows(float* d, const WgmmaOp&, const unsigned* a, WgmmaSpans, WgmmaRowsTile, const void* site);    // the first factor in registers
void wgmma_fence();
void wgmma_commit(const void* site);
void wgmma_wait(int pending, const void* site);

}  // namespace emu
