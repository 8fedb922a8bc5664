// A libblas.so.3 that passes for an OpenBLAS which takes every processor for a Prescott.
extern "C" {
void sgemm_() {}
const char* openblas_get_config() { return "OpenBLAS 0.3.0 DYNAMIC_ARCH"; }
const char* openblas_get_corename() { return "Prescott"; }
int openblas_get_num_threads() { return 1; }
int openblas_get_parallel() { return 2; }
}
