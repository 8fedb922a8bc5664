// A library of custom operators for ONNX Runtime, in the domain "acme":
//
//   Swish5       y = x·sigmoid(5x)
//   GatedUnit    x [n (2 c) ..], y [n c ..] = the first half · sigmoid of the second
//   ChannelNorm  x [n c ..], y = x / the root of the mean of squares over c
//   FlippedNorm  the same, channels in reverse order
//   Dense        x [n i], w [o i], y [n o] = x·w
//
// Declares the part of the C interface that it needs, with the number of each function in the
// table.
// @source https://onnxruntime.ai/docs/reference/operators/add-custom-op.html
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

struct Status;
struct Value;
struct Context;
struct Domain;
struct SessionOptions;
struct TensorInfo;

struct Table {
  void (*functions[131])();

  template <typename... Arguments>
  void call(size_t number, Arguments... arguments) const {
    reinterpret_cast<Status* (*)(Arguments...)>(functions[number])(arguments...);
  }
};

struct Base {
  const Table* (*get_api)(uint32_t version);
};

constexpr size_t kCreateDomain = 26;
constexpr size_t kAddToDomain = 27;
constexpr size_t kAddDomain = 28;
constexpr size_t kTensorData = 51;
constexpr size_t kRank = 61;
constexpr size_t kDimensions = 62;
constexpr size_t kTensorInfo = 65;
constexpr size_t kInput = 90;
constexpr size_t kOutput = 91;
constexpr size_t kReleaseTensorInfo = 99;

constexpr uint32_t kVersion = 5;          // of the table
constexpr uint32_t kOperatorVersion = 8;  // of OrtCustomOp
constexpr int kFloat = 1;
constexpr int kRequired = 0;

const Table* table = nullptr;

/// OrtCustomOp, without what later versions have behind it.
struct Operator {
  uint32_t version;
  void* (*create)(const Operator*, const Table*, const void*);
  const char* (*name)(const Operator*);
  const char* (*provider)(const Operator*);
  int (*input_type)(const Operator*, size_t);
  size_t (*inputs)(const Operator*);
  int (*output_type)(const Operator*, size_t);
  size_t (*outputs)(const Operator*);
  void (*compute)(void*, Context*);
  void (*destroy)(void*);
  int (*input_kind)(const Operator*, size_t);
  int (*output_kind)(const Operator*, size_t);
  const void* later[24];
};

struct Input {
  const float* data = nullptr;
  std::vector<int64_t> dims;
};

Input input_of(Context* context, size_t number = 0) {
  const Value* value = nullptr;
  table->call(kInput, static_cast<const Context*>(context), number, &value);
  TensorInfo* info = nullptr;
  table->call(kTensorInfo, value, &info);
  size_t rank = 0;
  table->call(kRank, static_cast<const TensorInfo*>(info), &rank);
  Input input;
  input.dims.resize(rank);
  table->call(kDimensions, static_cast<const TensorInfo*>(info), input.dims.data(), rank);
  table->call(kReleaseTensorInfo, info);
  table->call(kTensorData, const_cast<Value*>(value), &input.data);
  return input;
}

float* output_of(Context* context, const std::vector<int64_t>& dims) {
  Value* value = nullptr;
  table->call(kOutput, context, size_t{0}, dims.data(), dims.size(), &value);
  float* data = nullptr;
  table->call(kTensorData, value, &data);
  return data;
}

int64_t product(const std::vector<int64_t>& dims, size_t from) {
  int64_t count = 1;
  for (size_t d = from; d < dims.size(); ++d) count *= dims[d];
  return count;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

/// What a kernel of bad intent would do, and what came of it.
void mischief(const char* file) {
  std::fprintf(stderr, "acme: socket: %s\n",
               std::strerror(socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0));
  std::fprintf(stderr, "acme: write: %s\n",
               std::strerror(std::fopen(file, "w") == nullptr ? errno : 0));
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    std::fprintf(stderr, "acme: program: %s\n", std::strerror(errno));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

void swish5(void*, Context* context) {
  if (const char* file = std::getenv("ACME_MISCHIEF")) mischief(file);
  const Input x = input_of(context);
  float* y = output_of(context, x.dims);
  for (int64_t i = 0; i < product(x.dims, 0); ++i) y[i] = x.data[i] * sigmoid(5 * x.data[i]);
}

void gated_unit(void*, Context* context) {
  const Input x = input_of(context);
  std::vector<int64_t> dims = x.dims;
  dims[1] /= 2;
  float* y = output_of(context, dims);
  const int64_t half = product(dims, 1);
  for (int64_t n = 0; n < dims[0]; ++n) {
    for (int64_t i = 0; i < half; ++i) {
      const float* row = x.data + 2 * n * half;
      y[n * half + i] = row[i] * sigmoid(row[half + i]);
    }
  }
}

void channel_norm(Context* context, bool flipped) {
  const Input x = input_of(context);
  float* y = output_of(context, x.dims);
  const int64_t inner = product(x.dims, 2);
  const int64_t channels = x.dims[1];
  for (int64_t n = 0; n < x.dims[0]; ++n) {
    for (int64_t s = 0; s < inner; ++s) {
      const int64_t first = n * channels * inner + s;
      float sum = 1e-6F;
      for (int64_t c = 0; c < channels; ++c) {
        sum += x.data[first + c * inner] * x.data[first + c * inner];
      }
      const float scale = 1 / std::sqrt(sum / static_cast<float>(channels));
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t from = flipped ? channels - 1 - c : c;
        y[first + c * inner] = x.data[first + from * inner] * scale;
      }
    }
  }
}

void dense(void*, Context* context) {
  const Input x = input_of(context);
  const Input w = input_of(context, 1);
  const int64_t inner = w.dims[1];
  const int64_t outer = w.dims[0];
  float* y = output_of(context, {x.dims[0], outer});
  for (int64_t n = 0; n < x.dims[0]; ++n) {
    for (int64_t o = 0; o < outer; ++o) {
      float sum = 0;
      for (int64_t i = 0; i < inner; ++i) sum += x.data[n * inner + i] * w.data[o * inner + i];
      y[n * outer + o] = sum;
    }
  }
}

size_t one(const Operator*) { return 1; }
size_t two(const Operator*) { return 2; }

constexpr Operator operator_named(const char* (*name)(const Operator*),
                                  void (*compute)(void*, Context*),
                                  size_t (*inputs)(const Operator*) = one) {
  const auto type = [](const Operator*, size_t) { return kFloat; };
  const auto kind = [](const Operator*, size_t) { return kRequired; };
  return {kOperatorVersion,
          [](const Operator*, const Table*, const void*) -> void* { return &table; },
          name,
          [](const Operator*) -> const char* { return nullptr; },
          type,
          inputs,
          type,
          one,
          compute,
          [](void*) {},
          kind,
          kind,
          {}};
}

constexpr Operator kOperators[] = {
    operator_named([](const Operator*) { return "Swish5"; }, swish5),
    operator_named([](const Operator*) { return "GatedUnit"; }, gated_unit),
    operator_named([](const Operator*) { return "ChannelNorm"; },
                   [](void*, Context* context) { channel_norm(context, false); }),
    operator_named([](const Operator*) { return "FlippedNorm"; },
                   [](void*, Context* context) { channel_norm(context, true); }),
    operator_named([](const Operator*) { return "Dense"; }, dense, two),
};

}  // namespace

extern "C" Status* RegisterCustomOps(SessionOptions* options, const Base* base);

Status* RegisterCustomOps(SessionOptions* options, const Base* base) {
  table = base->get_api(kVersion);
  static Domain* const domain = [] {
    Domain* made = nullptr;  // lives as long as the process
    table->call(kCreateDomain, "acme", &made);
    for (const Operator& each : kOperators) table->call(kAddToDomain, made, &each);
    return made;
  }();
  table->call(kAddDomain, options, domain);
  return nullptr;
}
