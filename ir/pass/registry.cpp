#include "ir/pass/pass.h"

namespace acu::ir::pass {

Pass fuse_pass();
Pass tile_pass();

const std::vector<Pass>& all_passes() {
    static const std::vector<Pass> all{
        fuse_pass(),
        tile_pass(),
    };
    return all;
}

}  // namespace acu::ir::pass
