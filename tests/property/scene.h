#pragma once
#include "acuc/inputs.h"
#include "ir/interpret.h"
#include "ir/pass/driver.h"
#include "target/target.h"

/// An operator at sizes small enough to interpret, and ways to ask whether a plan of it computes what its definition says.
namespace acu::property {

struct Scene {
    std::string name;
    Subject subject;
    RunInputs inputs;
    ir::Program loops;      ///< unscheduled, all sizes fixed
    ir::Arrays expected;    ///< in f64
};
/// Nothing where inputs cannot be made or the definition does not run.
std::optional<Scene> scene_of(std::string name, Subject s, uint64_t seed);

/// Empty, or how a program of the scene differs from the definition, in f64.
std::string difference(const Scene& s, const ir::Program& p, bool approximate, const ir::InterpretOptions& options = {});

/// A program that a plan made of a scene.
struct Planned {
    const Scene* scene;
    ir::Program program;
    std::vector<ir::pass::Step> steps;
    bool approximate = false;
};
struct Found {
    std::string scene, what;
    std::vector<ir::pass::Step> steps;
};
std::string text_of(const Found& f);

/// What ran in emulation, and what does not fit the target's shared memory.
struct Emulated {
    int runs = 0, not_fitting = 0;
};
/// The emitted kernels of all in one module. Runs in order, by a seed, with shared buffers apart, with shifted tensors by turns.
void emulate(const std::vector<Planned>& all, const Target& target, Emulated& tally, std::vector<Found>& failures);

}  // namespace acu::property
