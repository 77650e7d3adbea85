#include "synth/plan/draft.h"

#include "ir/lower/lower.h"
#include "ir/pass/driver.h"
#include "microkernels/catalogue.h"

namespace acu::synth::plan {

bool Draft::step(std::string pass, std::vector<std::string> sites, ir::pass::Arguments args, std::string why) {
    const ir::pass::Context context{target_, &microkernels::find, &microkernels::stamped};
    ir::pass::Step s{std::move(pass), std::move(sites), std::move(args), "default", std::move(why)};
    auto result = ir::pass::apply_step(program_, static_cast<int>(steps_.size()) + 1, s, context);
    auto* done = std::get_if<ir::pass::Applied>(&result);
    if (!done || !done->effect) return false;
    program_ = std::move(done->program);
    steps_.push_back(std::move(s));
    return true;
}

bool Draft::lowers() const { return static_cast<bool>(ir::lower::schedule_to_kernels(program_, *target_)); }

}  // namespace acu::synth::plan
