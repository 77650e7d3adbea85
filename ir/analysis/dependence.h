#pragma once
#include "ir/program.h"

namespace acu::ir::analysis {

/// One access of a block to a buffer. An accumulation (`+=`) reads and writes its outs: it counts as a write here.
struct Touch {
    std::string tensor;
    std::vector<Index> subscripts;
    std::vector<Index> version;
    bool write;
};
std::vector<Touch> touches(const Block& b);

/// Loads of one buffer in values and guards, each distinct access once.
std::vector<Value> loads_of(const Block& b, const std::string& tensor);
void for_each_load(const Value& v, const std::function<void(const Value&)>& f);

/// The buffers of all blocks inside.
std::set<std::string> touched(const Body& body);
std::set<std::string> written(const Body& body);
/// Read, or accumulated into.
std::set<std::string> read(const Body& body);
inline std::set<std::string> touched(const Stmt& s) { return touched(Body{s}); }
inline std::set<std::string> written(const Stmt& s) { return written(Body{s}); }
inline std::set<std::string> read(const Stmt& s) { return read(Body{s}); }

const Axis* axis_of(const Block& b, const std::string& name);

/// The buffer in which two statements meet at different values of axis `name` (then their loops over it cannot be one loop); empty: they never do. They may
/// share the loop iff in every buffer that both touch, one writing, the subscripts that mention `name` are equal words which use no other axis of either.
std::string carried(const Block& first, const Block& second, const std::string& name);

/// Do they commute: neither writes what the other touches? Answers the buffers that stand against it.
std::set<std::string> conflicts(const Body& a, const Body& b);

}  // namespace acu::ir::analysis
