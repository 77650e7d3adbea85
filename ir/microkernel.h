#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "ir/program.h"

namespace acu::ir {

/// What a microkernel does: which blocks it may be bound to (`Copy`, `Reduce`, `Scan`, `Merge`, `Mma`), or what lowering makes of it (`Exchange` between lanes, `Sync`).
enum class MicrokernelKind { Copy, Reduce, Scan, Merge, Exchange, Sync, Mma };
inline std::string_view name_of(MicrokernelKind kind) {
    constexpr std::string_view names[] = {"copy", "reduce", "scan", "merge", "exchange", "sync", "mma"};
    return names[static_cast<size_t>(kind)];
}

/// Who calls it together.
enum class ThreadGroup { Thread, Lanes, Warp, Group, Warpgroup, Block, Cluster };
inline std::string_view name_of(ThreadGroup group) {
    constexpr std::string_view names[] = {"thread", "lanes", "warp", "group", "warpgroup", "block", "cluster"};
    return names[static_cast<size_t>(group)];
}

/// A chip that has it, and the instruction that the machine code must show: regular expressions, for a disassembly and, where there is no disassembler, for
/// PTX (the same where the text is assembly anyway, as for AMD).
struct MicrokernelTarget {
    std::string name;
    std::string instruction;
    std::string ptx;
};

struct MicrokernelOperand {
    std::string name;
    std::vector<Scope> scopes;    ///< where it may lie: `Out` and `Temp` are written as global memory like `In`
    bool written = false;
};

/// What it takes besides its operands. `scratch_values`: elements of shared memory a warp; `scratch_bytes`: bytes of it a warp besides;
/// `registers`: 32-bit registers a thread for each word of an element, roughly; `barriers`: of the whole group, inside.
struct MicrokernelResources {
    int scratch_values = 0;
    int scratch_bytes = 0;
    int registers = 0;
    int barriers = 0;
};

/// Of a matrix instruction: rows x columns of results from `depth` terms each, spread over the threads of the group as `accumulator` says, a fragment of ir/layout_use.h.
struct MatrixShape {
    int64_t rows = 0, columns = 0, depth = 0;    ///< 0: it is none
    std::string accumulator;
    DType sum = DType::F32;
    int64_t most_columns = 0;        ///< of one group; 0: any number
    bool across = true;              ///< may neighbours of an operand in memory lie along its rows or columns, not along the terms?
    bool needs_swizzle = false;      ///< operands lie in lines as long as a swizzle pattern
    bool mixed = false;              ///< may the factors have two types, or be whole numbers that count as floats?
    bool rows_in_registers = false;  ///< the factor with the rows lies in registers, as the sums of another such product whose columns are the terms of this one; it is rounded
};

/// A device function of microkernels/, described so that a pass can decide whether a block may be bound to it.
struct Microkernel {
    std::string id;                          ///< `common.block_reduce`
    std::string function;                    ///< its name in the header
    std::string doc;
    MicrokernelKind kind;
    std::vector<MicrokernelTarget> targets;
    std::vector<DType> types;                ///< of elements
    std::vector<Monoid> monoids = {};        ///< none: it does not combine
    std::vector<MicrokernelOperand> operands = {};
    std::vector<int> bytes = {};             ///< that one call may move; none: a whole number of elements. Addresses are multiples of `alignment`, 0: of these bytes
    int alignment = 0;
    ThreadGroup group = ThreadGroup::Thread;
    int most_threads = 1;                    ///< of the group; groups larger than a thread are whole warps
    MicrokernelResources resources = {};
    std::vector<std::string> headers;        ///< of microkernels/common, in the order in which they must be read; `device` stands before all
    MatrixShape matrix = {};
    std::string source;                      ///< the section of the instruction set manual, or the paper

    /// Null where the chip lacks it.
    const MicrokernelTarget* on(std::string_view target) const {
        const auto it = std::ranges::find(targets, target, &MicrokernelTarget::name);
        return it == targets.end() ? nullptr : &*it;
    }
};

}  // namespace acu::ir
