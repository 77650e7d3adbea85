// Registers that one warpgroup of a block leaves to another. sm_90a. PTX ISA, "setmaxnreg".

/// By all threads of a warpgroup, where each role says its number: the most that a thread has from here on. Growing waits until others have given back enough.
template <int Registers, bool Grows>
ACU_DEVICE void set_registers() {
#if ACU_NATIVE
    if (Grows) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
    else asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
#endif
}
