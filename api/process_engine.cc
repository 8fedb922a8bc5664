#include "parsimony/api/process_engine.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/base/parse.h"
#include "parsimony/graph/elements.h"

namespace parsimony {
namespace {

using Bytes = std::vector<std::byte>;

/// "[1,2]" of items written by `write`.
template <typename Items, typename Write>
std::string list_of(const Items& items, const Write& write) {
  std::string text;
  for (const auto& item : items) text.append(text.empty() ? "" : ",").append(write(item));
  return "[" + text + "]";
}

std::string list_of(const Shape& numbers) {
  return list_of(numbers, [](int64_t number) { return std::to_string(number); });
}

std::string number_of_value(ValueId value) {
  return std::to_string(value == kNone ? -1 : int64_t{value.number()});
}

std::string type_and_dims(DType dtype, const Shape& dims) {
  return "\"dtype\":" + std::to_string(onnx_number(dtype)) + ",\"dims\":" + list_of(dims);
}

std::string text_of(const Attribute& attribute) {
  const auto one = [](const auto& item) -> std::string {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, int64_t>) {
      return std::to_string(item);
    } else if constexpr (std::is_same_v<std::decay_t<decltype(item)>, double>) {
      if (std::isinf(item)) return item < 0 ? "-Infinity" : "Infinity";
      return json_text(item);
    } else {
      return json_text(std::string_view(item));
    }
  };
  return std::visit(
      [&](const auto& value) -> std::string {
        using Kind = std::decay_t<decltype(value)>;
        constexpr bool kSingle = std::is_same_v<Kind, int64_t> || std::is_same_v<Kind, double> ||
                                 std::is_same_v<Kind, std::string>;
        if constexpr (kSingle) {
          return one(value);
        } else {
          return list_of(value, one);
        }
      },
      attribute);
}

std::string text_of(const Node& node) {
  return R"({"op":)" + json_text((node.domain.empty() ? "" : node.domain + "::") + node.op) +
         R"(,"inputs":)" + list_of(node.inputs, number_of_value) + R"(,"outputs":)" +
         list_of(node.outputs, number_of_value) + R"(,"attributes":{)" +
         [&] {
           std::string members;
           for (const auto& [key, value] : node.attributes) {
             members.append(members.empty() ? "" : ",").append(json_text(key)).append(":");
             members.append(text_of(value));
           }
           return members;
         }() +
         "}}";
}

}  // namespace

/// Asks and waits for the answer. Thread-safe.
class ProcessEngine::Connection {
 public:
  struct Answer {
    std::string text;
    Bytes bytes;

    JsonDocument document() const {
      return {text, "answer of the process", throw_as<UnsupportedError>};
    }
    /// Returns lists of numbers, whose sizes the text has.
    std::vector<std::vector<double>> numbers() const {
      std::vector<std::vector<double>> lists;
      const std::byte* next = bytes.data();
      const JsonDocument sizes = document();
      for (const JsonReader size : sizes.root().at("sizes").list()) {
        std::vector<double>& own = lists.emplace_back(static_cast<size_t>(size.count()));
        if (own.empty()) continue;
        std::memcpy(own.data(), next, own.size() * sizeof(double));
        next += own.size() * sizeof(double);
      }
      return lists;
    }
  };

  explicit Connection(int socket) : socket_(socket) {}

  /// @param text  members of an object, without braces
  Answer ask(const std::string& text, std::span<const std::byte> bytes = {}) {
    const std::lock_guard lock(mutex_);
    const std::string header = "{" + text + ",\"forget\":" + list_of(forgotten_) + "}";
    forgotten_.clear();
    const std::array<uint64_t, 2> sizes = {header.size(), bytes.size()};
    send(std::as_bytes(std::span(sizes)));
    send(std::as_bytes(std::span(header)));
    send(bytes);
    std::array<uint64_t, 2> expected{};
    receive(std::as_writable_bytes(std::span(expected)));
    Answer answer;
    answer.text.resize(expected[0]);
    answer.bytes.resize(expected[1]);
    receive(std::as_writable_bytes(std::span(answer.text)));
    receive(answer.bytes);
    const JsonDocument document = answer.document();
    if (const auto error = document.root().find("error")) throw UnsupportedError(error->text());
    return answer;
  }

  /// A value or network that nobody uses; the next message says so.
  void forget(int64_t number) {
    const std::lock_guard lock(mutex_);
    forgotten_.push_back(number);
  }

 private:
  void send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      bytes = bytes.subspan(moved(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL)));
    }
  }
  void receive(std::span<std::byte> bytes) const {
    while (!bytes.empty()) bytes = bytes.subspan(moved(read(socket_, bytes.data(), bytes.size())));
  }
  static size_t moved(ssize_t count) {
    if (count > 0) return static_cast<size_t>(count);
    if (count < 0 && errno == EINTR) return 0;
    throw UnsupportedError("the process that has the data does not answer");
  }

  const int socket_;
  std::mutex mutex_;
  std::vector<int64_t> forgotten_;
};

/// A tensor of the process.
class ProcessEngine::Value final : public EngineTensor {
 public:
  Value(std::shared_ptr<Connection> connection, const JsonReader& found)
      : connection_(std::move(connection)),
        number_(found.at("number").count()),
        dtype_(dtype_of_onnx(found.at("dtype").count())) {
    for (const JsonReader size : found.at("dims").list()) dims_.push_back(size.count());
  }
  Value(const Value&) = delete;
  ~Value() override { connection_->forget(number_); }

  /// Returns the values that an answer lists.
  static EngineValues all_of(const std::shared_ptr<Connection>& connection,
                             const Connection::Answer& answer) {
    EngineValues values;
    const JsonDocument document = answer.document();
    for (const JsonReader found : document.root().at("values").list()) {
      values.push_back(std::make_shared<const Value>(connection, found));
    }
    return values;
  }

  int64_t number() const { return number_; }
  DType dtype() const override { return dtype_; }
  Shape dims() const override { return dims_; }
  TensorBytes to_host() const override {
    const std::string text = R"("do":"fetch","value":)" + std::to_string(number_);
    return {"", dtype_, dims_, connection_->ask(text).bytes};
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const int64_t number_;
  const DType dtype_;
  Shape dims_;
};

class ProcessEngine::OpenNetwork final : public Network {
 public:
  OpenNetwork(std::shared_ptr<Connection> connection, int64_t number)
      : connection_(std::move(connection)), number_(number) {}
  OpenNetwork(const OpenNetwork&) = delete;
  ~OpenNetwork() override { connection_->forget(number_); }

  int64_t number() const { return number_; }

  EngineValues forward(const EngineValues& inputs) override {
    Bytes bytes;
    const std::string given = list_of(inputs, [&](const EngineValue& input) -> std::string {
      if (input == nullptr) return "null";
      if (const auto* own = dynamic_cast<const Value*>(input.get())) {
        return std::to_string(own->number());
      }
      const TensorBytes host = input->to_host();
      bytes.insert(bytes.end(), host.bytes.begin(), host.bytes.end());
      return "{" + type_and_dims(host.dtype, host.dims) + "}";
    });
    return Value::all_of(
        connection_,
        connection_->ask(
            R"("do":"run","network":)" + std::to_string(number_) + R"(,"inputs":)" + given, bytes));
  }

  std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                              const RunOptions& /*options*/) override {
    std::vector<TensorList> outputs;
    for (const TensorList& one : inputs) outputs.push_back(on_host(forward(host_values(one))));
    return outputs;
  }

  void bind(const TensorList& inputs) override { inputs_ = host_values(inputs); }
  void compute() override { outputs_ = forward(inputs_); }
  TensorList outputs() override { return on_host(outputs_); }

 private:
  const std::shared_ptr<Connection> connection_;
  const int64_t number_;
  EngineValues inputs_;  ///< what was bound
  EngineValues outputs_;
};

namespace {

constexpr std::string_view kPrefix = "process:";

}  // namespace

bool ProcessEngine::of_process(const std::string& data) { return data.starts_with(kPrefix); }

std::unique_ptr<ProcessEngine> ProcessEngine::of(const std::string& data) {
  if (!of_process(data)) return nullptr;
  const auto socket = number_of<int>(data.substr(kPrefix.size()));
  if (!socket) throw ConfigError(data, ": expected process:FD, the number of an open socket");
  return std::unique_ptr<ProcessEngine>(new ProcessEngine(*socket));
}

ProcessEngine::ProcessEngine(int socket) : connection_(std::make_shared<Connection>(socket)) {
  const Connection::Answer answer = connection_->ask(R"("do":"begin")");
  const JsonDocument document = answer.document();
  const JsonReader data = document.root();
  samples_ = data.at("samples").count();
  values_ = data.at("values").count();
  batch_ = data.at("batch").count();
  for (const JsonReader count : data.at("batches").list()) batches_.push_back(count.count());
  for (const JsonReader weight : data.at("weights").list()) weights_.insert(weight.text());
}

void ProcessEngine::share(const Graph& original) { original_ = &original; }

std::unique_ptr<Network> ProcessEngine::open(const Graph& graph, const OpenOptions& /*options*/) {
  Bytes bytes;
  const auto is_shared = [&](WeightId id) {
    if (original_ == nullptr || id >= original_->weights.next_id()) return false;
    const Weight& own = original_->weight(id);
    const Weight& weight = graph.weight(id);
    return own.data == weight.data && own.dims == weight.dims && own.name == weight.name &&
           weights_.contains(own.name);
  };
  std::vector<std::string> weights;
  IdVector<ValueId, bool> known(graph.values.size(), false);
  const auto add = [&](ValueId id) {
    if (id == kNone || known[id] || graph.value(id).weight == kNone) return;
    known[id] = true;
    const Weight& weight = graph.weight_of(id);
    const bool shared = is_shared(graph.value(id).weight);
    weights.push_back("{\"value\":" + number_of_value(id) + "," +
                      type_and_dims(weight.dtype, weight.dims) +
                      ",\"name\":" + (shared ? json_text(weight.name) : "null") + "}");
    if (shared) return;
    const Bytes own = dense_bytes(weight);
    bytes.insert(bytes.end(), own.begin(), own.end());
  };
  for (const Node& node : graph.nodes) {
    if (!node.bodies.empty()) {
      throw UnsupportedError("the process that has the data does not run ", node.op);
    }
    for (const ValueId input : node.inputs) add(input);
  }
  for (const ValueId output : graph.outputs) add(output);
  const auto as_it_is = [](const std::string& text) { return text; };
  const std::string text = R"("do":"open","nodes":)" +
                           list_of(graph.nodes, [](const Node& node) { return text_of(node); }) +
                           R"(,"weights":)" + list_of(weights, as_it_is) + R"(,"inputs":)" +
                           list_of(graph.inputs, number_of_value) + R"(,"outputs":)" +
                           list_of(graph.outputs, number_of_value);
  const Connection::Answer answer = connection_->ask(text, bytes);
  return std::make_unique<OpenNetwork>(connection_, answer.document().root().at("number").count());
}

std::unique_ptr<Network> ProcessEngine::open_masked(const Graph& /*graph*/, const Plan& /*plan*/,
                                                    const OpenOptions& /*options*/) {
  throw UnsupportedError("the process that has the data does not run masked networks");
}

std::vector<int64_t> ProcessEngine::runs(int64_t requested) const {
  const int64_t size = batch(requested);
  std::vector<int64_t> runs(static_cast<size_t>(samples_ / size), size);
  if (batch_ == 0 && samples_ % size > 0) runs.push_back(samples_ % size);
  return runs;
}

EngineValues ProcessEngine::inputs(int64_t first, int64_t count) {
  return Value::all_of(connection_,
                       connection_->ask(R"("do":"inputs","first":)" + std::to_string(first) +
                                        R"(,"count":)" + std::to_string(count)));
}

std::vector<int64_t> ProcessEngine::classes(int64_t count) {
  const Connection::Answer answer =
      connection_->ask(R"("do":"classes","count":)" + std::to_string(count));
  std::vector<int64_t> classes;
  const JsonDocument document = answer.document();
  for (const JsonReader one : document.root().at("classes").list()) classes.push_back(one.count());
  return classes;
}

std::vector<std::vector<double>> ProcessEngine::gradients(Network& network, int64_t first,
                                                          int64_t count,
                                                          const std::vector<Factor>& factors) {
  const auto text_of_factor = [](const Factor& factor) {
    return list_of(Shape{factor.value.number(), factor.reader.number(), factor.input, factor.dim});
  };
  return connection_
      ->ask(R"("do":"gradients","network":)" +
            std::to_string(dynamic_cast<OpenNetwork&>(network).number()) + R"(,"first":)" +
            std::to_string(first) + R"(,"count":)" + std::to_string(count) + R"(,"factors":)" +
            list_of(factors, text_of_factor))
      .numbers();
}

std::vector<std::vector<double>> ProcessEngine::gradients(
    int64_t batch, Over over, const std::vector<WeightFactor>& factors) {
  const auto text_of_factor = [](const WeightFactor& factor) {
    return "[" + json_text(std::string_view(factor.name)) + "," + std::to_string(factor.dim) + "]";
  };
  return connection_
      ->ask(R"("do":"weight_gradients","batch":)" + std::to_string(batch) + R"(,"by_sample":)" +
            (over == Over::kSamples ? "true" : "false") + R"(,"factors":)" +
            list_of(factors, text_of_factor))
      .numbers();
}

}  // namespace parsimony
