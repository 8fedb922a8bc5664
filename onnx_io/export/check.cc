#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/export/export.h"

namespace parsimony::onnx_io {

void check(const std::string& model) {
  onnx::ModelProto proto;
  if (!proto.ParseFromString(model)) throw errors::checker_says("it cannot be parsed");
  try {
    onnx::checker::check_model(proto);
    const onnx::ShapeInferenceOptions strict(/*check_type=*/true, /*error_mode=*/1,
                                             /*data_propagation=*/false);
    onnx::shape_inference::InferShapes(proto, onnx::OpSchemaRegistry::Instance(), strict);
  } catch (const std::exception& error) {
    throw errors::checker_says(error.what());
  }
}

}  // namespace parsimony::onnx_io
