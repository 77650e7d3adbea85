#include "codegen/dialect.h"

namespace acu::codegen {

const Dialect& dialect_of(Platform platform) {
    static const Dialect cuda{".cu", "<cuda_runtime.h>", "cudaStream_t", "cudaError_t", "cudaMallocAsync", "cudaFreeAsync", "cudaGetLastError", "cudaGetErrorString",
                              "(void)cudaFuncSetAttribute({0}, cudaFuncAttributeMaxDynamicSharedMemorySize, {1});"};
    static const Dialect hip{".hip", "<hip/hip_runtime.h>", "hipStream_t", "hipError_t", "hipMallocAsync", "hipFreeAsync", "hipGetLastError", "hipGetErrorString",
                             "(void)hipFuncSetAttribute((const void*){0}, hipFuncAttributeMaxDynamicSharedMemorySize, {1});"};
    return platform == Platform::Hip ? hip : cuda;
}

}  // namespace acu::codegen
