#pragma once
#include "target/target.h"

namespace acu::codegen {

/// The words in which CUDA and HIP differ, on the host side. Device code differs only inside microkernels/common.
struct Dialect {
    std::string_view extension;      ///< of a source file
    std::string_view include;
    std::string_view stream;         ///< type
    std::string_view error;          ///< type
    std::string_view allocate;       ///< (void**, bytes, stream): in the order of the stream
    std::string_view release;        ///< (void*, stream)
    std::string_view last_error;     ///< reads and clears
    std::string_view error_string;
    std::string_view more_shared;    ///< the statement that lets kernel {0} have {1} bytes of shared memory, more than 48 KB
};

const Dialect& dialect_of(Platform platform);

}  // namespace acu::codegen
