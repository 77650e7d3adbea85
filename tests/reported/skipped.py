"""The rows of the collection, and what of them cannot be tried by these tests, with the reason."""

IDS = """
D1 D2 D3 D4 D6 D7 D8 D9 D11 D13 D14 D15
P1 P2 P4 P5 P6 P7 P10 P11 P12 P13
I1 I3 I5 I6 I7 I8 I10 I11
E1 E3 E4
S1 S2 S4 S6 S7 S9
N1 N4 N5 N7 N8 N9
T1 T2 T4 T5 T7 T8 T9 T11 T13 T14 T15
C3 C4 C5 C6
A2 A3 A4 A5 A7 A8 A9 A10 A11 A12
H2 H3 H4 H5 H7 H8 H9
M1 M2 M4
""".split()

MATRIX = "needs matrix instructions"
SEARCH = "needs the search for plans"
DEVICE = "needs a device"

# (row, what of it, why). A row may also be tested in the part that can be.
SKIPPED = [
    ("D3", "wgmma with tiles of 24 … 72 columns", MATRIX),
    ("D8", "N = K = 4096 on emulated chips", "16.8 million products an emulated row take too long; 256 is tried, and 4096 on the CPU with --all"),
    ("D9", "S = 1000 on emulated chips", "takes too long; up to 129 is tried, and 1000 on the CPU with --all"),
    ("P1", "one iteration between warps with roles", "needs bulk copies of sm_90a; pipelines without roles are tried"),
    ("P2", "phases of mbarriers", "needs bulk copies of sm_90a; pipelines without roles are tried"),
    ("P11", "tile 128 x 128 x 64, 8 waves, 100 repeats", "races are found by random orders of threads, on a smaller tile"),
    ("P12", "100 repeats", "random orders of threads, fewer repeats"),
    ("I1", "3.3e9 bytes, and 65384 x 65384", "12 GB: the first runs with --large; the second is checked in the emitted text"),
    ("I3", "copies of 2^30 bytes and more on HIP", "on the CPU with --large up to 2^31 bytes; the width of indices is checked in the emitted text"),
    ("I5", "B*H*S*D > 2^31", "more memory than there is: the emitted text is checked"),
    ("I6", "S = 66000 on both sides with D = 64", "17 GB of scores without a plan that streams; one long side with D = 2 is tried"),
    ("I7", "2^20 x 2^12", "more memory than there is, and tuning: the emitted text is checked"),
    ("I10", "a launch that fails, then one that does not", DEVICE),
    ("S1", "a tensor with pitch 7920", "`acuc run` reads contiguous files; the launcher's strides need a device. Odd pitches are tried by subscripts"),
    ("S2", "a pointer that is off by 2 bytes, and TMA", DEVICE + " and the launcher; slices are tried by subscripts"),
    ("S9", "stride 0 and negative strides given to a launcher", DEVICE + "; both are tried by subscripts"),
    ("T13", "a warning that bf16 is slow on sm_70", "belongs to the planner that chooses instructions; the result is tried"),
    ("C3", "256 x 256 x 128 and its tile with 3 stages on MMA", MATRIX + "; a smaller one is tried"),
    ("C5", "the bandwidth of a strided gather", DEVICE + "; the results are tried"),
    ("A2", "candidates that share an output", SEARCH),
    ("A4", "found plans verified again", SEARCH),
    ("A5", "a cache that is cut off or killed in the middle", "there is no cache of plans yet; processes at once are tried"),
    ("A7", "measurements on a busy device", DEVICE + " and the tuner"),
    ("A8", "a time limit for each candidate", SEARCH),
    ("A9", "a verifier of candidates that is fooled", SEARCH + "; the comparison and `--check` are tried"),
    ("A10", "saved results of a search", SEARCH + "; plans of another chip are tried"),
    ("A11", "user streams, graphs, a second device", DEVICE),
    ("H5", "bandwidth of RMSNorm", DEVICE + "; the results are tried"),
    ("H7", "i8 MFMA of gfx90a", MATRIX + "; the results are tried"),
    ("H9", "the type of an MMA", MATRIX),
    ("M1", "nvcc and hipcc that fail", "nothing compiles with them in `acuc run` without a device; the compiler of the emulation is tried"),
    ("M4", "tile, thread and suspected pass of a wrong element", SEARCH + "; index and values are tried"),
]
