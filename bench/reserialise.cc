// Parses a model and serialises it unchanged with protobuf's streams: the yardstick for `prune`.
//
//   bench_reserialise IN.onnx OUT.onnx
#include <onnx/onnx_pb.h>

#include <fstream>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  onnx::ModelProto model;
  std::ifstream in(argv[1], std::ios::binary);
  if (!model.ParseFromIstream(&in)) return 1;
  std::ofstream out(argv[2], std::ios::binary);
  return model.SerializeToOstream(&out) && out.flush() ? 0 : 1;
}
