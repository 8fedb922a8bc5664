#include "bench/support/decoder.h"

#include <Eigen/Core>
#include <cmath>
#include <cstring>
#include <functional>

#include "bench/support/builder.h"
#include "bench/support/external_writer.h"
#include "bench/support/models.h"

namespace parsimony::bench {
namespace {

using onnx::TensorProto;

class Decoder {
 public:
  Decoder(const std::string& path, const DecoderSizes& sizes)
      : path_(path), sizes_(sizes), head_(sizes.width / sizes.heads), data_(path + ".data") {}

  int64_t save() {
    std::string x = embedding();
    for (int64_t i = 0; i < sizes_.layers; ++i) {
      const std::string layer = "/model/layers." + std::to_string(i) + "/";
      std::string y = attention(norm(x, layer + "input_layernorm"), layer + "self_attn/");
      x = b_.add(x, y, layer + "Add_output_0");
      y = feed_forward(norm(x, layer + "post_attention_layernorm"), layer + "mlp/");
      x = b_.add(x, y, layer + "Add_1_output_0");
    }
    linear(norm(x, "/model/norm"), sizes_.width, sizes_.words, "lm_head", "logits");
    b_.output("logits");
    model_ = b_.take();
    finish_declarations();
    for (TensorProto& tensor : weights_) *model_.mutable_graph()->add_initializer() = tensor;
    bench::save(model_, path_);
    return data_.finish();
  }

 private:
  /// Numbers that stay in the model, in float16.
  std::string numbers(const std::string& name, const Builder::Dims& dims,
                      const std::function<float(int64_t)>& of) {
    TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(TensorProto::FLOAT16);
    int64_t count = 1;
    for (const int64_t dim : dims) {
      tensor.add_dims(dim);
      count *= dim;
    }
    std::vector<Eigen::half> values;
    for (int64_t i = 0; i < count; ++i) values.emplace_back(of(i));
    tensor.set_raw_data(values.data(), values.size() * sizeof(Eigen::half));
    weights_.push_back(tensor);
    return name;
  }

  std::string number(const std::string& name, float value) {
    return numbers(name, {}, [=](int64_t) { return value; });
  }

  std::string transpose(const std::string& x, const Builder::Dims& order, const std::string& name) {
    Builder::set(b_.node("Transpose", {x}, name), "perm", order);
    return name;
  }

  std::string reshape(const std::string& x, const Builder::Dims& dims, const std::string& name) {
    b_.node("Reshape", {x, b_.integers(name + "_shape", dims)}, name);
    return name;
  }

  std::string embedding() {
    weights_.push_back(
        data_.weight("model.embed_tokens.weight", {sizes_.words, sizes_.width}, sizes_.width));
    const std::string ids = b_.input("input_ids", {-1, sizes_.positions});
    b_.node("Gather", {"model.embed_tokens.weight", ids}, "/model/embed_tokens/Gather_output_0");
    return "/model/embed_tokens/Gather_output_0";
  }

  /// x · rsqrt(mean(x²) + ε) in float32, times a weight in float16.
  std::string norm(const std::string& x, const std::string& name) {
    const auto cast = [&](const std::string& of, int64_t type, const std::string& suffix) {
      Builder::set(b_.node("Cast", {of}, name + suffix), "to", type);
      return name + suffix;
    };
    const std::string wide = cast(x, TensorProto::FLOAT, "/Cast_output_0");
    b_.node("Pow", {wide, scalar32(name + "/two", 2)}, name + "/Pow_output_0");
    onnx::NodeProto& mean =
        b_.node("ReduceMean", {name + "/Pow_output_0"}, name + "/ReduceMean_output_0");
    Builder::set(mean, "axes", Builder::Dims{-1});
    b_.node("Add", {name + "/ReduceMean_output_0", scalar32(name + "/eps", 1e-5F)},
            name + "/Add_output_0");
    b_.unary("Sqrt", name + "/Add_output_0", name + "/Sqrt_output_0");
    b_.node("Div", {wide, name + "/Sqrt_output_0"}, name + "/Div_output_0");
    const std::string narrow =
        cast(name + "/Div_output_0", TensorProto::FLOAT16, "/Cast_1_output_0");
    const std::string weight = numbers(name.substr(1) + ".weight", {sizes_.width},
                                       [](int64_t i) { return 1 + 0.01F * float(i % 7); });
    b_.node("Mul", {weight, narrow}, name + "/Mul_1_output_0");
    return name + "/Mul_1_output_0";
  }

  std::string scalar32(const std::string& name, float value) {
    TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(TensorProto::FLOAT);
    tensor.set_raw_data(&value, sizeof(value));
    weights_.push_back(tensor);
    return name;
  }

  /// MatMul by [in, out], as exporters write a Linear without bias: the name is a number.
  std::string linear(const std::string& x, int64_t in, int64_t out, const std::string& node,
                     const std::string& output) {
    const std::string weight = "onnx::MatMul_" + std::to_string(1000 + weights_.size());
    weights_.push_back(data_.weight(weight, {in, out}, in));
    b_.node("MatMul", {x, weight}, output).set_name(node + "/MatMul");
    return output;
  }

  /// [n, p, heads · d] to [n, heads, p, d].
  std::string heads(const std::string& x, int64_t count, const std::string& name) {
    const std::string split = reshape(x, {0, sizes_.positions, count, head_}, name + "_split");
    return transpose(split, {0, 2, 1, 3}, name + "_heads");
  }

  std::string project(const std::string& x, int64_t count, const std::string& name) {
    return heads(linear(x, sizes_.width, count * head_, name, name + "/MatMul_output_0"), count,
                 name);
  }

  /// cos or sin of position times frequency, [1, 1, p, d].
  std::string table(const std::string& name, float (*of)(float)) {
    return numbers(name, {1, 1, sizes_.positions, head_}, [&](int64_t i) {
      const int64_t pair = i % head_ % (head_ / 2);
      const float turn = std::pow(1e4F, -2.0F * float(pair) / float(head_));
      return of(float(i / head_) * turn);
    });
  }

  /// x · cos + rotate_half(x) · sin.
  std::string rotary(const std::string& x, const std::string& name) {
    const auto slice = [&](int64_t from, int64_t to, const std::string& out) {
      b_.node("Slice",
              {x, b_.integers(out + "_starts", {from}), b_.integers(out + "_ends", {to}),
               b_.integers(out + "_axes", {3}), b_.integers(out + "_steps", {1})},
              out);
      return out;
    };
    const std::string low = slice(0, head_ / 2, name + "/Slice_output_0");
    const std::string high = slice(head_ / 2, INT64_MAX, name + "/Slice_1_output_0");
    b_.unary("Neg", high, name + "/Neg_output_0");
    Builder::set(b_.node("Concat", {name + "/Neg_output_0", low}, name + "/Concat_output_0"),
                 "axis", -1);
    b_.node("Mul", {x, table(name + "/cos", [](float v) { return std::cos(v); })},
            name + "/Mul_output_0");
    b_.node("Mul",
            {name + "/Concat_output_0", table(name + "/sin", [](float v) { return std::sin(v); })},
            name + "/Mul_1_output_0");
    return b_.add(name + "/Mul_output_0", name + "/Mul_1_output_0", name + "/Add_output_0");
  }

  /// Each key head for all the queries that it serves: Unsqueeze, Expand, Reshape.
  std::string repeated(const std::string& x, const std::string& name) {
    const int64_t times = sizes_.heads / sizes_.key_heads;
    b_.node("Unsqueeze", {x, b_.integers(name + "_axes", {2})}, name + "/Unsqueeze_output_0");
    const Builder::Dims requested = {1, sizes_.key_heads, times, sizes_.positions, head_};
    b_.node("Expand", {name + "/Unsqueeze_output_0", b_.integers(name + "_dims", requested)},
            name + "/Expand_output_0");
    return reshape(name + "/Expand_output_0", {-1, sizes_.heads, sizes_.positions, head_},
                   name + "/Reshape_output_0");
  }

  std::string attention(const std::string& x, const std::string& name) {
    const std::string q = rotary(project(x, sizes_.heads, name + "q_proj"), name + "q_rotary");
    const std::string k = rotary(project(x, sizes_.key_heads, name + "k_proj"), name + "k_rotary");
    const std::string v = project(x, sizes_.key_heads, name + "v_proj");
    const std::string keys = transpose(repeated(k, name + "k_repeat"), {0, 1, 3, 2}, name + "k_t");
    b_.node("MatMul", {q, keys}, name + "MatMul_output_0");
    const float root = std::sqrt(static_cast<float>(head_));
    b_.node("Div", {name + "MatMul_output_0", number(name + "root", root)}, name + "Div_output_0");
    const std::string mask = numbers(
        name + "mask", {1, 1, sizes_.positions, sizes_.positions},
        [&](int64_t i) { return i % sizes_.positions > i / sizes_.positions ? -65504.0F : 0.0F; });
    b_.add(name + "Div_output_0", mask, name + "Add_output_0");
    Builder::set(b_.node("Softmax", {name + "Add_output_0"}, name + "Softmax_output_0"), "axis",
                 -1);
    b_.node("MatMul", {name + "Softmax_output_0", repeated(v, name + "v_repeat")},
            name + "MatMul_1_output_0");
    const std::string back = transpose(name + "MatMul_1_output_0", {0, 2, 1, 3}, name + "back");
    const std::string merged =
        reshape(back, {0, sizes_.positions, sizes_.width}, name + "Reshape_3_output_0");
    return linear(merged, sizes_.width, sizes_.width, name + "o_proj",
                  name + "o_proj/MatMul_output_0");
  }

  std::string feed_forward(const std::string& x, const std::string& name) {
    const std::string gate = linear(x, sizes_.width, sizes_.hidden, name + "gate_proj",
                                    name + "gate_proj/MatMul_output_0");
    const std::string up =
        linear(x, sizes_.width, sizes_.hidden, name + "up_proj", name + "up_proj/MatMul_output_0");
    b_.unary("Sigmoid", gate, name + "act_fn/Sigmoid_output_0");
    b_.node("Mul", {gate, name + "act_fn/Sigmoid_output_0"}, name + "act_fn/Mul_output_0");
    b_.node("Mul", {name + "act_fn/Mul_output_0", up}, name + "Mul_output_0");
    return linear(name + "Mul_output_0", sizes_.hidden, sizes_.width, name + "down_proj",
                  name + "down_proj/MatMul_output_0");
  }

  void finish_declarations() {
    onnx::GraphProto& graph = *model_.mutable_graph();
    graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        TensorProto::INT64);
    graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        TensorProto::FLOAT16);
  }

  std::string path_;
  DecoderSizes sizes_;
  int64_t head_;
  ExternalWriter data_;
  Builder b_;
  std::vector<TensorProto> weights_;
  onnx::ModelProto model_;
};

}  // namespace

int64_t save_decoder(const std::string& path, const DecoderSizes& sizes) {
  return Decoder(path, sizes).save();
}

}  // namespace parsimony::bench
