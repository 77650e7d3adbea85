#include <algorithm>
#include <utility>

#include "codegen/kernel_writer.h"
#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"

namespace acu::codegen {

using namespace ir;

// Products that run beside the threads (`until_needed`): they are waited for in front of the first statement that needs their sums, and what they read is released then. One that was started under
// a condition is waited for under the same one.

void KernelWriter::start_flight(const Block& b) {
    Flight f{++flights_started_, b.outs[0].tensor, {}, condition_, {}};
    for (const Value& v : b.vals[0]->args)
        analysis::for_each_load(v, [&](const Value& x) {
            if (writer_.decl(x->name).ring.versions) f.reads.emplace(barriers_of(x->name), writer_.index(analysis::normal(x->subscripts[0])));
        });
    flights_.push_back(std::move(f));
}

/// Waits for the first `count` of them.
void KernelWriter::land(size_t count) {
    if (!count) return;
    headers_.insert("wgmma_order");
    const auto behind = std::count_if(flights_.begin() + static_cast<std::ptrdiff_t>(count), flights_.end(), [&](const Flight& f) { return f.condition.empty() || f.condition == condition_; });
    const std::vector<Flight> landed(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(count));
    flights_.erase(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(count));
    for (const Flight& f : landed) line("warpgroup_landed<{}>({});", behind, names_.buffer(f.sums));
    for (const Flight& f : landed)
        for (const std::string& release : f.releases) line("{}{}", f.condition.empty() || f.condition == condition_ ? "" : fmt::format("if ({}) ", f.condition), release);
}

/// In front of a statement.
void KernelWriter::land_for(const Stmt& s) {
    if (flights_.empty() || std::holds_alternative<Sync>(s->node)) return;
    if (std::holds_alternative<Loop>(s->node) && std::get<Loop>(s->node).kind == LoopKind::Serial) return land(flights_.size());
    if (std::holds_alternative<If>(s->node)) return;
    size_t needed = 0;
    const auto touch = [&](const std::string& tensor) {
        for (size_t i = 0; i < flights_.size(); ++i)
            if (flights_[i].sums == tensor) needed = std::max(needed, i + 1);
    };
    for_each_block({s}, [&](const Block& b, Loc) {
        for (const std::string& t : tensors_read(b)) touch(t);
        for (const Access& o : b.outs)
            if (b.pending != until_needed) touch(o.tensor);
    });
    land(needed);
}

/// A release of what a product on its way reads comes when that has landed. Answers whether it waits for that.
bool KernelWriter::waits_for_flight(const std::string& ring, const std::string& slot, const std::string& release) {
    for (size_t i = flights_.size(); i-- > 0;)
        for (const auto& [name, version] : flights_[i].reads) {
            if (name != ring) continue;
            if (version == slot) return flights_[i].releases.push_back(release), true;
            land(i + 1);
            return false;
        }
    return false;
}

/// What was started before a condition and has landed where it holds lands where it does not, too.
void KernelWriter::land_otherwise(const std::vector<Flight>& before, const std::string& condition) {
    std::vector<Flight> now = std::exchange(flights_, before);
    std::erase_if(flights_, [&](const Flight& f) { return f.condition == condition; });
    size_t landed = 0;
    for (size_t i = 0; i < flights_.size(); ++i)
        if (std::ranges::find(now, flights_[i].number, &Flight::number) == now.end()) landed = i + 1;
    if (landed) {
        line("}} else {{");
        ++depth_;
        land(landed);
        --depth_;
    }
    flights_ = std::move(now);
}

}  // namespace acu::codegen
