#include "ir/interpret_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/function.h"
#include "ir/scalar.h"

namespace acu::ir {
namespace {

struct Number {
    double f = 0;
    int64_t i = 0;
};

constexpr std::string_view block_collective = "common.block_";

class Interpreter {
  public:
    Interpreter(const Program& p, const Arguments& args, Arrays& arrays, Run& run) : p_(p), args_(args), run_(run), env_(args.dims) {
        for (const auto& [n, v] : known_dims(p)) env_[n] = v;
        for (const Decl& d : p.decls) open(d, &arrays);
    }

    void run() {
        for (const Stmt& kernel : p_.body) {
            epoch_ = 0;
            body({kernel});
        }
        for (const Decl& d : p_.decls)
            if (d.scope == Scope::Out) check_written(*buffers_.at(d.name));
    }

  private:
    [[noreturn]] void fault(const char* rule, std::string what) const { throw Fault{{rule, loc_, std::move(what)}}; }

    // ---- buffers

    void open(const Decl& d, Arrays* arrays) {
        BufferPointer& b = buffers_[d.name];
        b = std::make_shared<Buffer>();
        b->decl = &d;
        if (d.ring.versions) return;
        window(d, b->plain);
        if (arrays && (d.scope == Scope::In || d.scope == Scope::Out)) outside(d, b->plain, *arrays);
        cells(d, b->plain);
        if (d.scope == Scope::Param) scalar(d, b->plain);
    }

    void window(const Decl& d, Cells& c) {
        for (const Window& w : d.dims) c.origin.push_back(index(w.origin)), c.sizes.push_back(std::max<int64_t>(0, index(w.size)));
    }

    void outside(const Decl& d, Cells& c, Arrays& arrays) const {
        if (d.scope == Scope::Out) {
            c.array = &(arrays[d.name] = Array::zeros(d.type, c.sizes));
            return;
        }
        const auto it = arrays.find(d.name);
        if (it == arrays.end() || it->second.type != d.type || it->second.sizes != c.sizes)
            fault("run.input", fmt::format("the input `{}` is missing, or has another type or shape than {}[{}]", d.name, name_of(d.type), fmt::join(c.sizes, ", ")));
        c.array = &it->second;
    }

    static void cells(const Decl& d, Cells& c) {
        if (!c.array) c.own = Array::zeros(d.type, c.sizes), c.array = &c.own;
        const bool given = d.scope == Scope::In || d.scope == Scope::Param;
        const auto count = static_cast<size_t>(c.array->count());
        c.written.assign(count, given ? 1 : 0);
        if (given) return;
        c.writer.assign(count, -1), c.reader.assign(count, -1);
        c.many.assign(count, 0);
    }

    void scalar(const Decl& d, Cells& c) {
        const auto it = args_.scalars.find(d.name);
        if (it == args_.scalars.end()) fault("run.input", fmt::format("the scalar `{}` has no value", d.name));
        c.array->set(0, it->second);
    }

    void check_written(const Buffer& b) const {
        const auto it = std::ranges::find(b.plain.written, 0);
        if (it != b.plain.written.end()) fault("run.D9", fmt::format("element {} of the output `{}` is not written", it - b.plain.written.begin(), b.decl->name));
    }

    Key key_of(const std::vector<Index>& version) {
        Key key;
        for (const Index& e : version) key.push_back(index(e));
        return key;
    }

    /// The version of a ring; the one that is written is opened, which drops the oldest when the ring is full.
    Cells& version_of(Buffer& b, const std::vector<Index>& version, bool write) {
        const Key key = key_of(version);
        for (auto& [k, c] : b.versions)
            if (k == key) return c;
        if (!write) fault("run.D6", fmt::format("the version {{{}}} of `{}` is not in the ring", fmt::join(key, ", "), b.decl->name));
        while (static_cast<int64_t>(b.versions.size()) >= b.decl->ring.versions) b.versions.pop_front();
        return add_version(b, key);
    }

    /// Who fills a version fixes its window.
    Cells& add_version(Buffer& b, const Key& key) {
        const Env before = env_;
        for (size_t i = 0; i < key.size(); ++i) env_[b.decl->ring.keys[i]] = key[i];
        Cells c;
        window(*b.decl, c);
        env_ = before;
        b.versions.emplace_back(key, std::move(c));
        cells(*b.decl, b.versions.back().second);
        return b.versions.back().second;
    }

    Cells& cells_of(Buffer& b, const std::vector<Index>& version, bool write) { return b.decl->ring.versions ? version_of(b, version, write) : b.plain; }

    /// Two iterations that have no order meet in a cell, one of them writing.
    void race(const Buffer& b, int64_t at, const char* other) const {
        if (!run_.races) return;
        fault("run.D5", fmt::format("element {} of `{}` is {} by another iteration of a parallel loop, or by a thread with no barrier between", at, b.decl->name, other));
    }

    void note_read(const Buffer& b, Cells& c, int64_t at) {
        const auto i = static_cast<size_t>(at);
        if (place_ < 0 || c.writer.empty() || b.decl->ring.versions) return;
        if (c.writer[i] >= 0 && run_.unordered(c.writer[i], place_)) race(b, at, "written");
        if (c.reader[i] >= 0 && run_.unordered(c.reader[i], place_)) c.many[i] = 1;
        else c.reader[i] = place_, c.many[i] = 0;
    }

    void note_write(const Buffer& b, Cells& c, int64_t at, bool atomic) {
        const auto i = static_cast<size_t>(at);
        c.written[i] = run_.serial;
        if (place_ < 0 || c.writer.empty() || atomic || b.decl->ring.versions) return;
        if (c.writer[i] >= 0 && run_.unordered(c.writer[i], place_)) race(b, at, "written");
        const auto same_instance = [&] { return run_.places[static_cast<size_t>(c.reader[i])].instance == run_.places[static_cast<size_t>(place_)].instance; };
        if (c.reader[i] >= 0 && (run_.unordered(c.reader[i], place_) || (c.many[i] && same_instance()))) race(b, at, "read");
        c.writer[i] = place_;
    }

    // ---- index expressions

    int64_t index(const Index& e) {
        switch (e->op) {
            case IndexOp::Const: return e->value;
            case IndexOp::Name: {
                const auto it = env_.find(e->name);
                if (it == env_.end()) fault("run.D3", fmt::format("the name `{}` has no value", e->name));
                return it->second;
            }
            case IndexOp::Load: {
                int64_t at = 0;
                Buffer& b = *buffers_.at(e->name);
                if (!locate(b.plain, e->args, at)) fault("run.D1", fmt::format("`{}` is outside its tensor", print(e)));
                if (!b.plain.written[static_cast<size_t>(at)]) fault("run.D2", fmt::format("element {} of `{}` is read before it is written", at, e->name));
                note_read(b, b.plain, at);
                return load_int(b.plain.array->bytes.data(), at, b.decl->type);
            }
            case IndexOp::Segment: return find_segment(*buffers_.at(e->name), index(e->args[0]));
            default: return apply(e->op, index(e->args[0]), index(e->args[1]));
        }
    }

    static int64_t find_segment(const Buffer& b, int64_t t) {
        const Array& offsets = *b.plain.array;
        const int64_t count = offsets.count();
        int64_t e = 0;
        while (e + 2 < count && load_int(offsets.bytes.data(), e + 1, b.decl->type) <= t) ++e;
        return e;
    }

    /// The element at the subscripts; false where one lies outside.
    bool locate(const Cells& c, const std::vector<Index>& subscripts, int64_t& at) {
        at = 0;
        for (size_t d = 0; d < subscripts.size(); ++d) {
            const int64_t i = index(subscripts[d]) - c.origin[d];
            if (i < 0 || i >= c.sizes[d]) return false;
            at = at * c.sizes[d] + i;
        }
        return true;
    }

    // ---- values

    static Number rounded(DType t, double x) { return {t == DType::F64 ? x : static_cast<double>(static_cast<float>(x)), 0}; }

    Number value(const Value& v) {
        switch (v->op) {
            case Op::Const: return {v->number, v->integer};
            case Op::OfIndex: return {0, index(v->subscripts[0])};
            case Op::Load: return read(*v);
            case Op::Neg: {
                const Number a = value(v->args[0]);
                return {-a.f, wrap(static_cast<int64_t>(-static_cast<uint64_t>(a.i)), v->type)};
            }
            case Op::Not: return {0, !value(v->args[0]).i};
            case Op::BitNot: return {0, wrap(~value(v->args[0]).i, v->type)};
            case Op::And: return {0, value(v->args[0]).i && value(v->args[1]).i};
            case Op::Or: return {0, value(v->args[0]).i || value(v->args[1]).i};
            case Op::Select: return value(v->args[value(v->args[0]).i ? 1 : 2]);
            case Op::Cast: return convert(value(v->args[0]), v->args[0]->type, *type_named(v->name));
            case Op::Call: return function(*v);
            case Op::Reduce: fault("run.level", "a reduction inside a value: the program is at tensor level");
            default: break;
        }
        const Number a = value(v->args[0]), b = value(v->args[1]);
        return is_float(v->args[0]->type) ? arithmetic(*v, a.f, b.f) : arithmetic(*v, a.i, b.i);
    }

    static Number arithmetic(const ValueNode& v, double a, double b) {
        switch (v.op) {
            case Op::Add: return rounded(v.type, a + b);
            case Op::Sub: return rounded(v.type, a - b);
            case Op::Mul: return rounded(v.type, a * b);
            case Op::Div: return rounded(v.type, a / b);
            default: return {0, compare(v.op, a, b)};
        }
    }

    static Number arithmetic(const ValueNode& v, int64_t a, int64_t b) {
        const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
        const int bits = v.type == DType::I64 ? 63 : 31;
        const auto whole = [&](uint64_t r) { return Number{0, wrap(static_cast<int64_t>(r), v.type)}; };
        switch (v.op) {
            case Op::Add: return whole(x + y);
            case Op::Sub: return whole(x - y);
            case Op::Mul: return whole(x * y);
            case Op::Div: return whole(static_cast<uint64_t>(floor_div(a, b)));
            case Op::Mod: return {0, floor_mod(a, b)};
            case Op::Shl: return whole(x << (y & static_cast<uint64_t>(bits)));
            case Op::Shr: return {0, a >> (b & bits)};
            case Op::BitAnd: return {0, a & b};
            case Op::BitXor: return {0, a ^ b};
            case Op::BitOr: return {0, a | b};
            default: return {0, compare(v.op, a, b)};
        }
    }

    static Number convert(Number a, DType from, DType to) {
        if (to == DType::Bool) return {0, is_float(from) ? a.f != 0 : a.i != 0};
        if (!is_float(to)) return {0, is_float(from) ? saturate(a.f, to) : saturate(a.i, to)};
        const double x = is_float(from) ? a.f : static_cast<double>(a.i);
        if (to == DType::F64) return {x, 0};
        const float narrow = is_float(from) ? static_cast<float>(a.f) : static_cast<float>(a.i);
        if (to == DType::Tf32) return {round_tf32(narrow), 0};
        std::array<std::byte, 8> cell{};
        store_float(cell.data(), 0, to, narrow);
        return {load_float(cell.data(), 0, to), 0};
    }

    Number function(const ValueNode& v) {
        std::array<Number, 3> a{};
        for (size_t i = 0; i < v.args.size(); ++i) a[i] = value(v.args[i]);
        const DType t = v.args[0]->type;
        if (!is_float(t)) return {0, wrap(integer_function(v.name, a[0].i, a[1].i), t)};
        const FunctionBody& f = body_of(v.name);
        const double x = t == DType::F64 ? f.f64(a[0].f, a[1].f, a[2].f) : f.f32(static_cast<float>(a[0].f), static_cast<float>(a[1].f), static_cast<float>(a[2].f));
        return v.type == DType::Bool ? Number{0, x != 0} : Number{x, 0};
    }

    Number read(const ValueNode& v) {
        Buffer& b = *buffers_.at(v.name);
        Cells& c = cells_of(b, v.version, false);
        int64_t at = 0;
        if (!locate(c, v.subscripts, at)) {
            if (v.args.empty()) fault("run.D1", fmt::format("`{}[…]` is read outside its {}", v.name, b.decl->scope < Scope::Register ? "tensor" : "window"));
            return value(v.args[0]);
        }
        if (!c.written[static_cast<size_t>(at)]) fault("run.D2", fmt::format("element {} of `{}` is read before it is written", at, v.name));
        note_read(b, c, at);
        return fetch(b, c, at);
    }

    static Number fetch(const Buffer& b, const Cells& c, int64_t at) {
        const void* data = c.array->bytes.data();
        return is_float(b.decl->type) ? Number{load_float(data, at, b.decl->type), 0} : Number{0, load_int(data, at, b.decl->type)};
    }

    void put(Buffer& b, Cells& c, int64_t at, DType from, Number x, bool atomic = false) {
        void* data = c.array->bytes.data();
        if (!is_float(b.decl->type)) store_int(data, at, b.decl->type, is_float(from) ? saturate(x.f, b.decl->type) : x.i);
        else store_float(data, at, b.decl->type, is_float(from) ? x.f : static_cast<double>(x.i));
        note_write(b, c, at, atomic);
    }

    // ---- statements

    void body(const Body& stmts) {
        for (const Stmt& s : stmts) {
            loc_ = s->loc;
            match(
                s, [&](const Block& b) { block(b); }, [&](const Loop& l) { loop(l); }, [&](const If& i) { body(value(i.condition).i ? i.body : i.otherwise); },
                [&](const Roles& r) { roles(r); }, [&](const Sync& y) { sync(y); });
        }
    }

    /// Threads of a block have no order up to the next barrier: all their loops until then are one instance.
    int64_t instance_of(LoopKind kind) {
        if (kind != LoopKind::Thread) return ++run_.serial;
        if (epoch_ == 0) epoch_ = ++run_.serial;
        return epoch_;
    }

    void loop(const Loop& l) {
        const int64_t extent = index(l.extent), instance = is_parallel(l.kind) ? instance_of(l.kind) : 0;
        const int outer = place_;
        const bool scatters = is_parallel(l.kind) && run_.shuffled;
        std::vector<int64_t> order;
        for (int64_t i = 0; scatters && i < extent; ++i) order.push_back(i);
        if (scatters) std::ranges::shuffle(order, run_.random);
        for (int64_t k = 0; k < extent; ++k) {
            const int64_t i = scatters ? order[static_cast<size_t>(k)] : k;
            env_[l.var] = i;
            for (const Let& x : l.lets) env_[x.name] = index(x.value);
            for (const Decl& d : l.allocs) open(d, nullptr);
            if (is_parallel(l.kind)) place_ = run_.place(outer, instance, i);
            body(l.body);
        }
        place_ = outer;
    }

    // ---- roles

    void roles(const Roles& r) {
        epoch_ = 0;    // all threads meet before the roles and after them
        const int64_t instance = ++run_.serial;
        std::vector<std::unique_ptr<Interpreter>> parts;
        std::vector<std::function<void(Coroutines&, size_t)>> bodies;
        for (const Role& role : r.roles) {
            parts.push_back(std::make_unique<Interpreter>(*this));
            parts.back()->place_ = run_.place(place_, instance, static_cast<int64_t>(parts.size()));
            bodies.emplace_back([&role, part = parts.back().get()](Coroutines& all, size_t me) {
                part->coroutines_ = &all, part->me_ = me;
                part->body(role.body);
            });
        }
        Coroutines(run_).run(std::move(bodies));
    }

    void wait_until(const std::string& what, const std::function<bool()>& ready) {
        if (coroutines_) coroutines_->wait(me_, ready);
        if (!ready()) fault("run.D7", fmt::format("nothing lets `{}` go on", what));
    }

    void sync(const Sync& y) {
        if (y.op >= SyncOp::Barrier) {    // copies land at once here; that they are waited for is for the emulation to see
            if (y.op == SyncOp::Barrier) epoch_ = 0;
            return;
        }
        if (y.op == SyncOp::Take || y.op == SyncOp::Pass) return turn(y);
        Buffer& b = *buffers_.at(y.name);
        const Key key = key_of(y.key);
        switch (y.op) {
            case SyncOp::Acquire: return acquire(b, key);
            case SyncOp::Commit: b.committed.insert(key); return;
            case SyncOp::Release: ++b.released[key]; return;
            default: wait_until(y.name, [&] { return b.committed.contains(key); });
        }
    }

    /// The slot of item n is free once item n - versions is released by all its readers.
    void acquire(Buffer& b, const Key& key) {
        const auto versions = static_cast<size_t>(b.decl->ring.versions);
        const size_t n = b.order.size();
        if (n >= versions) {
            const Key old = b.order[n - versions];
            wait_until(b.decl->name, [&] { return b.released[old] >= b.decl->ring.readers; });
            std::erase_if(b.versions, [&](const auto& v) { return v.first == old; });
        }
        b.order.push_back(key);
        add_version(b, key);
    }

    /// A turn belongs to one iteration of the loops around the roles.
    void turn(const Sync& y) {
        const int around = coroutines_ ? run_.places[static_cast<size_t>(place_)].parent : place_;
        int64_t& have = run_.turns[fmt::format("{} {}", y.name, around)];
        if (y.op == SyncOp::Take) wait_until(y.name, [&] { return have > 0; });
        have += y.op == SyncOp::Pass ? 1 : -1;
    }

    // ---- blocks

    void block(const Block& b) {
        ++run_.serial;
        if (b.via.starts_with(block_collective)) epoch_ = 0;    // it holds barriers
        if (run_.shuffled && std::ranges::none_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; })) return shuffled_points(b);
        points(b, 0);
    }

    void shuffled_points(const Block& b) {
        std::vector<std::vector<int64_t>> all{{}};
        for (const Axis& a : b.axes) {
            const int64_t base = index(a.base), size = index(a.size);
            std::vector<std::vector<int64_t>> next;
            for (const auto& p : all)
                for (int64_t i = 0; i < size; ++i) next.push_back(p), next.back().push_back(base + i);
            all = std::move(next);
        }
        std::ranges::shuffle(all, run_.random);
        for (const auto& p : all) {
            for (size_t i = 0; i < p.size(); ++i) env_[b.axes[i].name] = p[i];
            point(b);
        }
    }

    void points(const Block& b, size_t axis) {
        if (axis == b.axes.size()) return point(b);
        const Axis& a = b.axes[axis];
        const int64_t base = index(a.base), size = index(a.size);
        for (int64_t i = 0; i < size; ++i) {
            env_[a.name] = base + i;
            points(b, axis + 1);
        }
    }

    void point(const Block& b) {
        for (const Value& g : b.guards)
            if (!value(g).i) return;
        std::vector<Number> vals;
        for (const Value& v : b.vals) vals.push_back(value(v));
        if (is_pair(b.monoid)) return keep_best(b, vals[0], vals[1].i);
        if (b.monoid != Monoid::None) return combine(b, vals[0]);
        for (size_t i = 0; i < b.outs.size(); ++i) assign(b, i, vals[i]);
    }

    /// The cell that an out names; fails outside.
    struct Cell {
        Buffer& buffer;
        Cells& cells;
        int64_t at;
    };
    std::optional<Cell> cell(const Access& a) {
        Buffer& b = *buffers_.at(a.tensor);
        Cells& c = cells_of(b, a.version, true);
        int64_t at = 0;
        if (!locate(c, a.subscripts, at)) return {};
        return Cell{b, c, at};
    }
    Cell written_cell(const Access& a) {
        auto c = cell(a);
        if (!c) fault("run.D1", fmt::format("`{}` is written outside its {}", a.tensor, buffers_.at(a.tensor)->decl->scope < Scope::Register ? "tensor" : "window"));
        return *c;
    }

    void assign(const Block& b, size_t i, Number x) {
        const Cell out = written_cell(b.outs[i]);
        if (out.cells.written[static_cast<size_t>(out.at)] == run_.serial) fault("run.D4", fmt::format("element {} of `{}` is written twice by one statement", out.at, b.outs[i].tensor));
        put(out.buffer, out.cells, out.at, b.vals[i]->type, x);
    }

    void combine(const Block& b, Number x) {
        const bool atomic = is_scatter(b);
        const auto found = cell(b.outs[0]);
        if (!found && atomic) return;    // a scatter outside is dropped
        const Cell state = found ? *found : written_cell(b.outs[0]);
        if (!state.cells.written[static_cast<size_t>(state.at)]) fault("run.D2", fmt::format("`{}` is accumulated before it is filled", b.outs[0].tensor));
        const Number before = fetch(state.buffer, state.cells, state.at);
        const DType t = widened(state.buffer.decl->type);
        put(state.buffer, state.cells, state.at, t, combined(b, t, before, convert(x, b.vals[0]->type, t)), atomic);
        if (b.outs.size() < 2) return;
        const Cell out = written_cell(b.outs[1]);
        put(out.buffer, out.cells, out.at, t, b.exclusive ? before : fetch(state.buffer, state.cells, state.at));
    }

    static Number combined(const Block& b, DType t, Number a, Number x) {
        const MonoidInfo& m = info(b.monoid);
        if (m.op == Op::And) return {0, a.i && x.i};
        if (m.op == Op::Or) return {0, a.i || x.i};
        if (m.op == Op::Call && is_float(t)) return {body_of(m.name).f64(a.f, x.f, 0), 0};
        if (m.op == Op::Call) return {0, integer_function(m.name, a.i, x.i)};
        ValueNode n{m.op, t};
        return is_float(t) ? arithmetic(n, a.f, x.f) : arithmetic(n, a.i, x.i);
    }

    /// Keeps the k best (value, position) pairs, best first; k = 1 for ArgMax and ArgMin.
    void keep_best(const Block& b, Number x, int64_t position) {
        const int64_t k = b.monoid == Monoid::TopK ? b.k : 1;
        Access first = b.outs[0], second = b.outs[1];
        for (Access* a : {&first, &second})
            if (b.monoid == Monoid::TopK) a->subscripts.push_back(constant(0));
        const Cell values = written_cell(first), positions = written_cell(second);
        const bool real = is_float(b.vals[0]->type);
        const DType type = values.buffer.decl->type;
        const Number v = real ? convert(x, b.vals[0]->type, type) : x;
        const double key = real ? v.f : static_cast<double>(v.i);
        const auto beats = [&](int64_t j) {
            return better(b.monoid, key, position, values.cells.array->get(values.at + j), static_cast<int64_t>(positions.cells.array->get(positions.at + j)));
        };
        int64_t place = k;
        for (int64_t j = k; j-- > 0 && beats(j);) place = j;
        for (int64_t j = k - 1; j > place; --j) {
            put(values.buffer, values.cells, values.at + j, type, fetch(values.buffer, values.cells, values.at + j - 1));
            put(positions.buffer, positions.cells, positions.at + j, DType::I64, fetch(positions.buffer, positions.cells, positions.at + j - 1));
        }
        if (place == k) return;
        put(values.buffer, values.cells, values.at + place, b.vals[0]->type, v);
        put(positions.buffer, positions.cells, positions.at + place, DType::I64, {0, position});
    }

    const Program& p_;
    const Arguments& args_;
    Run& run_;
    Env env_;
    std::map<std::string, BufferPointer, std::less<>> buffers_;
    Coroutines* coroutines_ = nullptr;    // of the roles that this is one of
    size_t me_ = 0;
    int place_ = -1;
    int64_t epoch_ = 0;
    Loc loc_;
};

}  // namespace

Status interpret(const Program& p, const Arguments& args, Arrays& arrays, const InterpretOptions& options) {
    Run run;
    run.random.seed(options.seed);
    run.shuffled = options.seed != 0;
    run.races = options.races;
    try {
        Interpreter(p, args, arrays, run).run();
        return ok();
    } catch (const Fault& f) {
        return f.why;
    }
}

}  // namespace acu::ir
