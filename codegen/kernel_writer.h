#pragma once
#include <fmt/format.h>

#include <deque>

#include "codegen/kernel.h"
#include "codegen/expression.h"
#include "ir/lower/lower.h"

namespace acu::codegen {

inline constexpr std::string_view thread_name = "thread", block_barrier = "block_barrier();", warp_barrier = "warp_barrier();";
/// Blocks of one warp that become one.
inline constexpr int64_t warps_packed = 4;

/// In front of a loop: all its iterations in the text, or several, whose loads are on their way together.
inline constexpr std::string_view whole = "unroll", several = "unroll 8";

/// Writes the text of one kernel. Two forms: one thread an iteration of the grid loop (the fallback), or a block of threads an iteration (a loop that lowering
/// spread over threads).
class KernelWriter {
  public:
    KernelWriter(const ir::Program& p, const ir::Stmt& kernel, const Target& target, const EmitOptions& options);
    Kernel write(const std::string& name, const Neighbours& neighbours);

  private:
    // kernel.cpp: the frame
    template <class... A>
    void line(fmt::format_string<A...> format, A&&... args) {
        text_ += std::string(4 * depth_, ' ') + fmt::format(format, std::forward<A>(args)...) + provenance_ + "\n";
    }
    void pragma(std::string_view what) { text_ += fmt::format("{}#pragma {}\n", std::string(4 * depth_, ' '), what); }
    void use(const ir::Index& e);
    void use_sizes(const std::string& tensor);
    void use(const ir::Value& v);
    void use(const ir::Body& body);
    std::vector<KernelArgument> arguments();
    void parameter(const KernelArgument& a);
    std::string bounds() const;
    std::string entry(const std::string& name, const std::string& body) const;
    void cell_loop();
    void add_let(const ir::Let& x);
    ir::Index outermost(const ir::Index& total, const ir::Index& inner) const;
    std::vector<const ir::Decl*> outs() const;
    void declare(const ir::Decl& d);
    bool stays_narrow(const ir::Decl& d, int64_t cells) const;

    // kernel_statement.cpp: statements
    void body(const ir::Body& stmts);
    void one(const ir::Stmt& s);
    void wait_for_products();

    // kernel_flights.cpp: products on their way
    struct Flight {
        int number;
        std::string sums;
        std::set<std::pair<std::string, std::string>> reads;    ///< rings, and their slots
        std::string condition;                                  ///< under which it was started; empty: always
        std::vector<std::string> releases;                      ///< to write when it has landed
    };
    void start_flight(const ir::Block& b);
    void land(size_t count);
    void land_for(const ir::Stmt& s);
    bool waits_for_flight(const std::string& ring, const std::string& slot, const std::string& release);
    void land_otherwise(const std::vector<Flight>& before, const std::string& condition);

    void serial_loop(const ir::Loop& l);
    void branch(const ir::If& i);
    void block(const ir::Block& b);
    void points(const ir::Block& b);
    bool long_sum(const ir::Block& b);
    void scalar_block(const ir::Block& b);
    void axis_loop(const ir::Axis& a);
    void statement(const ir::Block& b);
    std::vector<std::string> effects(const ir::Block& b);
    std::string moved(const ir::Value& v, ir::DType to);
    std::string keep(const ir::Block& b);
    std::vector<std::string> combine(const ir::Block& b);
    std::string narrow_combined(const ir::Block& b, ir::DType type, const std::string& state, const std::string& x) const;
    std::string scatter(const ir::Block& b, const std::string& state, const std::string& x);

    // kernel_block.cpp: what the threads of a block do together
    bool shares_hardware_block() const;
    /// Of the hardware's block.
    int64_t block_size() const { return threads_ ? threads_ * packed_ / cluster_ : block_threads; }
    /// Of all that share memory: the blocks of a cluster that stand side by side, or the block.
    std::string_view all_barrier() const { return ranks_ > 1 ? "cluster_barrier();" : block_barrier; }
    bool is_part_of_warp() const { return threads_ > 0 && threads_ < target_.warp; }
    ir::Index block_loops();    ///< answers the number of blocks
    void share(const ir::Body& body);
    void share(const ir::Decl& d);
    void share_own(const ir::Decl& d);
    std::string share(const std::string& name, std::string_view type, int64_t count, int64_t bytes, int64_t alignment);
    void thread_loop(const ir::Loop& l);
    void collective(const ir::Block& b);
    void collective_scan(const ir::Block& b);
    void joined_rows(const ir::Block& b);
    std::string joined(const ir::Block& b);
    std::string joined_pair(const ir::Block& b);
    void joined_top(const ir::Block& b);
    std::string scratch_of(ir::DType type);
    void sync(const ir::Sync& y);

    // kernel_matrix.cpp: matrix instructions and the copy engine
    void matrix_product(const ir::Loop& l, const ir::Block& b);
    bool packs_pairs(const ir::Block& b);
    bool is_overwritten(const ir::Body& stmts, size_t fill);
    std::string operand(const ir::Value& load, const ir::Axis& terms) const;
    bool stores_by_quads(const ir::Loop& l);
    void stored_quad(const ir::Block& b, const std::string& start, const ir::Index& together, const std::string& thread, const std::string& words);
    struct Boxes;
    Boxes boxes_of(const ir::Block& b, const ir::Decl& tile, const std::vector<ir::Index>& in_tensor, int64_t blocks) const;
    std::string numbers(const std::vector<ir::Index>& at);
    void box_copy(const ir::Block& b);
    std::string map_of(const std::string& tensor, TensorBox box);

    // kernel_roles.cpp: parts of a block that wait for each other
    struct Meeting {
        int64_t slots, arrivals;    ///< barriers, and what ends a phase of each
    };
    void count_arrivals(const ir::Role& role, const ir::Sync& y, std::map<std::string, Meeting>& out) const;
    std::map<std::string, Meeting> meetings(const ir::Roles& r) const;
    void roles(const ir::Roles& r);
    void by_engine(const ir::Role& role);
    void join_rings(const ir::Roles& r);
    void leave_out(const ir::Body& body, const std::set<std::string>& rings);
    std::string barriers_of(const std::string& ring) const;
    void role(const ir::Role& role, int64_t first, int number);
    void ring_sync(const ir::Sync& y);
    void turn(const ir::Sync& y);

    // kernel_vector.cpp: chunks of neighbouring elements, asynchronous copies; false: the block has not that form
    bool vector_block(const ir::Block& b);
    void branch_loads(const ir::Value& v, const ir::Axis& chunk, const std::string& condition, std::vector<std::pair<ir::Value, std::string>>& out);
    bool is_multiple_always(const ir::Index& e, int64_t n) const;
    std::string run_of(int64_t size, const ir::Decl& d, const std::vector<ir::Index>& subscripts);
    void vector_points(const ir::Block& b, const std::vector<ir::Value>& loads, const std::function<bool(const ir::Access&)>& stores);
    std::map<std::string, std::string> redirected(const ir::Block& b, const std::vector<std::string>& results, const std::string& offset);
    bool async_copy(const ir::Block& b);
    std::string own_sum(const ir::Block& b);
    bool best_of_chunk(const ir::Block& b, const std::string& offset);
    std::string all_of(const std::vector<ir::Value>& conditions);

    const ir::Program& p_;
    const ir::Loop& loop_;
    const Target& target_;
    const EmitOptions& options_;
    int64_t threads_ = 0;    ///< of a block or role; 0: one thread an iteration
    int64_t cluster_ = 1;    ///< blocks that share the threads
    int64_t ranks_ = 1;      ///< blocks of a cluster that stand side by side
    std::map<std::string, const ir::Decl*> buffers_;
    int joins_ = 0;                            ///< reductions that the threads join
    std::vector<std::string> narrow_tiles_;    ///< large ones of 16-bit elements, in registers, which are gone through again after joins
    std::deque<ir::Decl> locals_;    ///< registers of the text alone
    Identifiers names_;
    ir::analysis::Facts facts_;
    ExpressionWriter writer_;
    std::set<std::string> used_, used_buffers_, written_, headers_;
    Alignment alignment_;
    std::string parameters_, passed_on_, text_, shared_text_, provenance_;
    int64_t shared_bytes_ = 0, packed_ = 1, registers_ = 0;    ///< registers: elements of register tiles of a thread
    size_t depth_ = 1;
    bool in_threads_ = false;
    std::string barrier_{block_barrier};        ///< of the threads that run this text
    std::set<std::string> asynchronous_;        ///< rings that are filled by asynchronous copies
    std::map<std::string, std::string> leader_; ///< of rings that share barriers, the one whose they are
    std::set<const ir::Sync*> left_out_;        ///< signals that another one of such rings gives
    std::string words_;                         ///< where the chunk that a thread would store goes instead
    std::set<std::string> paired_;              ///< tiles of 16-bit elements that matrix products take from registers, two in a word
    std::set<const ir::Block*> fresh_;          ///< products whose sums start from nothing
    bool multiplies_ = false;                   ///< matrices
    std::set<std::string> in_flight_;           ///< sums of products that may be on their way until the loop ends
    std::vector<Flight> flights_;               ///< products on their way until they are needed, the oldest first
    std::string condition_;                     ///< of the branch that is written
    int flights_started_ = 0;
    std::vector<KernelArgument> maps_;          ///< tensors as the copy engine sees them
    std::set<std::string> read_by_engine_, boxes_, multicast_;    ///< rings that the tensor cores read past the registers; that the copy engine fills; for all blocks of the cluster
    std::map<std::string, int64_t> passed_;     ///< turns that were given before the roles started
};

/// The one block inside a nest of loops; null where there is another number.
const ir::Block* only_block(const ir::Body& stmts);
/// `state op= x` as a statement.
std::string combined(ir::Monoid m, ir::DType t, const std::string& state, const std::string& x);

}  // namespace acu::codegen
