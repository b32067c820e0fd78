// u' = S (g_n u + b u^3 + gain dW_n) for all steps n of a block, S diagonal in Fourier space: a thread block a sample.
//
// POINTS^3 periodic points, POINTS odd; u never leaves the multiprocessor but to be stored. S is even in every wave
// number, so u is transformed axis by axis in real cosines and sines,
//     v_j = c_0 + sum_{k=1}^{H-1} c_k cos(2 pi j k/N) + c_{H-1+k} sin(2 pi j k/N),      N = POINTS, H = (N+1)/2,
// and so are, after the sums and differences of k and -k, the complex coefficients of dW, the half spectrum on the last
// axis. Coefficients come with the factor 2 of c_k, k > 0 (in `kinds` for the noise, in `damping` and `state` for u).
//
// Written before this text: POINTS, OUT (float or double, of the frames), THREADS, NOISE_THREADS (whole warps that take
// the noise while the others take u), BLOCKS (thread blocks that a multiprocessor holds at a time), COSINES and SINES.
// Every phase is a loop over independent lines, so that one thread alone does the same: a test runs it as plain C++.

constexpr int N = POINTS, H = (N + 1) / 2, LINES = N * N, COLUMNS = N * H, FIELD = N * N * N;
constexpr int KINDS = 8;

__constant__ double cosine[N] = COSINES;  // of 2 pi m/N
__constant__ double sine[N] = SINES;

// What both frames hold at the points j and N - j of a line.
struct alignas(16) Frames {
    OUT dw, dw_mirror, u, u_mirror;
};
constexpr int ROW = H * int(sizeof(Frames) / sizeof(double2));  // of the noise: H coefficients, later H Frames

// emit(slot, c_slot) without the factor 2/N: sums of v against cosines and sines.
template <class Emit>
__device__ __forceinline__ void analysis(const double (&v)[N], Emit emit) {
    double even[H], odd[H];
    even[0] = v[0];
    odd[0] = 0;
#pragma unroll
    for (int j = 1; j < H; ++j) {
        even[j] = v[j] + v[N - j];
        odd[j] = v[j] - v[N - j];
    }
#pragma unroll
    for (int k = 0; k < H; ++k) {
        double a = even[0], b = 0;
#pragma unroll
        for (int j = 1; j < H; ++j) {
            a += even[j] * cosine[j * k % N];
            if (k) b += odd[j] * sine[j * k % N];
        }
        emit(k, a);
        if (k) emit(H - 1 + k, b);
    }
}

// emit(j, v_j, v_{N-j}) for j = 0..H-1.
template <class Emit>
__device__ __forceinline__ void synthesis(const double (&c)[N], Emit emit) {
#pragma unroll
    for (int j = 0; j < H; ++j) {
        double a = c[0], b = 0;
#pragma unroll
        for (int k = 1; k < H; ++k) {
            a += c[k] * cosine[j * k % N];
            if (j) b += c[H - 1 + k] * sine[j * k % N];
        }
        emit(j, a + b, a - b);
    }
}

// The same for sum_k c_k exp(2 pi i j k/N) of complex numbers; c is overwritten.
template <class Emit>
__device__ __forceinline__ void inverse(double2 (&c)[N], Emit emit) {
#pragma unroll
    for (int k = 1; k < H; ++k) {  // c_k + c_-k goes with the cosine, i (c_k - c_-k) with the sine
        const double2 p = c[k], q = c[N - k];
        c[k] = {p.x + q.x, p.y + q.y};
        c[N - k] = {q.y - p.y, p.x - q.x};
    }
#pragma unroll
    for (int j = 0; j < H; ++j) {
        double2 a = c[0], b = {0, 0};
#pragma unroll
        for (int k = 1; k < H; ++k) {
            a.x += c[k].x * cosine[j * k % N];
            a.y += c[k].y * cosine[j * k % N];
            if (j) b.x += c[N - k].x * sine[j * k % N];
            if (j) b.y += c[N - k].y * sine[j * k % N];
        }
        emit(j, double2{a.x + b.x, a.y + b.y}, double2{a.x - b.x, a.y - b.y});
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) cubic_walk(
    const double2* __restrict__ members,  // (samples, steps, pairs): the noise, one number a wave vector
    const int* __restrict__ source,       // (N, N, H): KINDS times the member that a coefficient sees, and its kind
    const double2* __restrict__ kinds,    // (KINDS): factors of its real and imaginary part
    const double* __restrict__ damping,   // (H, N, N): S at |k| of the first axis, at the slots of the others
    const double* __restrict__ growth,    // (steps): g_n
    const double* __restrict__ factors,   // b, gain
    double* __restrict__ state,           // (samples, N, N, N): u as slots of the last axis; at the end the new u
    OUT* __restrict__ dw,                 // frame n of a sample; those of the next sample begin ``apart`` frames later
    OUT* __restrict__ u,                  // likewise, after step n
    int steps, int pairs, int apart) {
    extern __shared__ double2 pool[];
    double2* const kind = pool;
    double2* const noise = kind + KINDS;  // (N, N, ROW)
    Frames* const frames = reinterpret_cast<Frames*>(noise);
    double* const field = reinterpret_cast<double*>(noise + LINES * ROW);

    const int thread = threadIdx.x, threads = blockDim.x;
    const bool shared_out = threads > NOISE_THREADS;  // else every thread takes of both
    const bool for_noise = !shared_out || thread < NOISE_THREADS, for_u = !shared_out || thread >= NOISE_THREADS;
    const int noise_threads = shared_out ? NOISE_THREADS : threads;
    const int u_first = shared_out ? thread - NOISE_THREADS : thread;
    const int u_threads = shared_out ? threads - NOISE_THREADS : threads;

    const long long sample = blockIdx.x;
    members += sample * steps * pairs;
    state += sample * FIELD;
    dw += sample * apart * FIELD;
    u += sample * apart * FIELD;
    const double cube = factors[0], gain = factors[1];

    for (int i = thread; i < KINDS; i += threads) kind[i] = kinds[i];
    for (int i = thread; i < FIELD; i += threads) field[i] = state[i];
    __syncthreads();

    // n = -1 only brings the first noise to the points, n = steps only stores the last u.
    for (int n = -1;; ++n) {
        const bool more = n < steps;
        if (n >= 0) {
            // Last axis: dW and u at the points of a line, the explicit part of the step, and back.
            for (int line = thread; line < LINES; line += threads) {
                double v[N], c[N];
                if (more) {
                    const double2* const row = noise + line * ROW;
#pragma unroll
                    for (int k = 0; k < H; ++k) {
                        const double2 value = row[k];
                        c[k] = value.x;
                        if (k) c[H - 1 + k] = -value.y;
                    }
                    synthesis(c, [&](int j, double here, double mirror) {
                        v[j] = here;
                        if (j) v[N - j] = mirror;
                    });
                }
                else {
#pragma unroll
                    for (int j = 0; j < N; ++j) v[j] = 0;
                }
#pragma unroll
                for (int k = 0; k < N; ++k) c[k] = field[line * N + k];
                const double g = more ? growth[n] : 0.0;
                synthesis(c, [&](int j, double here, double mirror) {
                    const int at = j ? N - j : 0;
                    frames[line * H + j] = Frames{OUT(v[j]), OUT(v[at]), OUT(here), OUT(mirror)};
                    v[j] = here * (g + cube * here * here) + gain * v[j];
                    if (j) v[at] = mirror * (g + cube * mirror * mirror) + gain * v[at];
                });
                if (more) analysis(v, [&](int slot, double value) { field[line * N + slot] = value; });
            }
            __syncthreads();

            for (int i = thread; i < LINES * H; i += threads) {
                const int line = i / H, j = i % H, at = line * N + j, mirror = line * N + (j ? N - j : 0);
                const Frames f = frames[i];
                if (more) {
                    OUT* const frame = dw + (long long)n * FIELD;
                    frame[at] = f.dw;
                    frame[mirror] = f.dw_mirror;
                }
                if (n > 0) {
                    OUT* const frame = u + (long long)(n - 1) * FIELD;
                    frame[at] = f.u;
                    frame[mirror] = f.u_mirror;
                }
            }
            if (!more) break;

            // Middle axis, forward.
            for (int line = thread; line < LINES; line += threads) {
                double* const at = field + line / N * LINES + line % N;
                double v[N];
#pragma unroll
                for (int j = 0; j < N; ++j) v[j] = at[j * N];
                analysis(v, [&](int slot, double value) { at[slot * N] = value; });
            }
            __syncthreads();
        }

        // First axis: the next noise from its members; u forward, damped, and back.
        const bool next = n + 1 < steps;
        if (for_noise && next) {
            const double2* const now = members + (long long)(n + 1) * pairs;
            for (int column = thread; column < COLUMNS; column += noise_threads) {
                double2 c[N];
#pragma unroll
                for (int j = 0; j < N; ++j) {
                    const int code = source[j * COLUMNS + column];
                    const double2 member = now[code / KINDS], factor = kind[code % KINDS];
                    c[j] = {member.x * factor.x, member.y * factor.y};
                }
                double2* const at = noise + column / H * ROW + column % H;
                inverse(c, [&](int j, double2 here, double2 mirror) {
                    at[j * N * ROW] = here;
                    if (j) at[(N - j) * N * ROW] = mirror;
                });
            }
        }
        if (for_u && n >= 0) {
            for (int line = u_first; line < LINES; line += u_threads) {
                double v[N], c[N];
#pragma unroll
                for (int j = 0; j < N; ++j) v[j] = field[j * LINES + line];
                analysis(v, [&](int slot, double value) {
                    c[slot] = value * damping[(slot < H ? slot : slot - H + 1) * LINES + line];
                });
                synthesis(c, [&](int j, double here, double mirror) {
                    field[j * LINES + line] = here;
                    if (j) field[(N - j) * LINES + line] = mirror;
                });
            }
        }
        __syncthreads();

        // Middle axis, back.
        if (for_noise && next) {
            for (int column = thread; column < COLUMNS; column += noise_threads) {
                double2* const at = noise + column / H * N * ROW + column % H;
                double2 c[N];
#pragma unroll
                for (int j = 0; j < N; ++j) c[j] = at[j * ROW];
                inverse(c, [&](int j, double2 here, double2 mirror) {
                    at[j * ROW] = here;
                    if (j) at[(N - j) * ROW] = mirror;
                });
            }
        }
        if (for_u && n >= 0) {
            for (int line = u_first; line < LINES; line += u_threads) {
                double* const at = field + line / N * LINES + line % N;
                double c[N];
#pragma unroll
                for (int k = 0; k < N; ++k) c[k] = at[k * N];
                synthesis(c, [&](int j, double here, double mirror) {
                    at[j * N] = here;
                    if (j) at[(N - j) * N] = mirror;
                });
            }
        }
        __syncthreads();
    }
    for (int i = thread; i < FIELD; i += threads) state[i] = field[i];
}
