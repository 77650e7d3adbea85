#pragma once
#include "synth/blame/blame.h"

// Faults that are planted on purpose: a pass, a step of the lowering or an emitted text is run as it is, and what it answers is damaged. The compiler itself has no switch for them:
// `synth::blame::Request` takes passes, lowering and emitter.
namespace acu::faults {

using synth::blame::Cause;

/// A program, a plan that is right for it, and small sizes.
struct Scene {
    std::string program;
    std::vector<std::string> steps;    ///< JSON; ids count from 1
    ir::Env dims;
    std::string target = "sm_80";
};
Scene product();            ///< tiles of a product, staged through a ring
Scene asynchronous();       ///< the same by asynchronous copies
Scene roles();              ///< the same, the copies by a role of their own
Scene rows();               ///< a sum a row, by a microkernel, and its use
Scene columns();            ///< a reduction in slices
Scene lifted();             ///< guards that became fills

struct Expected {
    std::string detector;    ///< the code of the finding, or `values`
    Cause cause = Cause::None;
    std::vector<int> decisions = {};
    std::string part = {};
};

using Damage = std::function<ir::Program(const ir::Program&)>;

/// One of `pass`, `lowering` and `text` is set, or none.
struct Fault {
    std::string name;
    Scene scene;
    Expected expected;
    std::string pass = {}, lowering = {};
    Damage damage = {};
    std::function<void(std::string&)> text = {};    ///< of a translation unit
};

std::vector<Fault> clean_plans();
std::vector<Fault> pass_faults();
std::vector<Fault> lowering_faults();
std::vector<Fault> text_faults();

/// What a fault is blamed on, on a machine where it is planted. `emulate`: texts are run, too.
Result<synth::blame::Blame> blamed(const Fault& fault, bool emulate);

/// Delta debugging and the choice of sizes, by themselves; answers how many checks failed.
int check_tools();

// ---- damaging programs (damage.cpp)

/// Every statement of the program replaced by what `f` answers for it, inner ones first.
ir::Program rebuilt(const ir::Program& p, const std::function<ir::Body(const ir::Stmt&)>& f);
ir::Program change_loop(const ir::Program& p, const std::string& var, const std::function<void(ir::Loop&)>& f);
ir::Program change_block(const ir::Program& p, const std::string& label, const std::function<void(ir::Block&)>& f);
ir::Program without_block(const ir::Program& p, const std::string& label);
/// The synchronisation of this kind that stands nearest before the block left out.
ir::Program without_sync_before(const ir::Program& p, ir::SyncOp op, const std::string& label);
/// All synchronisation of this kind on one ring left out.
ir::Program without_sync_of(const ir::Program& p, ir::SyncOp op, const std::string& ring);
/// Every node of an index expression replaced by what `f` answers for it, where it answers one.
ir::Program change_index(const ir::Program& p, const std::function<ir::Index(const ir::Index&)>& f);
void replace_all(std::string& text, const std::string& from, const std::string& to);

}  // namespace acu::faults
