#include "parsimony/checkpoints/new_checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/graph/elements.h"
#include "tests/support/temporary_folder.h"

namespace parsimony::test {
namespace {

/// A new file of torch.save is read as what was written.
TEST(NewCheckpoint, IsReadBack) {
  const TemporaryFolder folder;
  const at::Tensor a = at::randn({3, 2});
  const at::Tensor b = at::arange(4);
  const auto plain = [](const char* name, const at::Tensor& tensor, const char* type) {
    return PlainTensor{
        .name = name,
        .type = element_type_of_name(type),
        .dims = tensor.sizes().vec(),
        .elements = {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()},
        .is_parameter = tensor.is_floating_point(),
        .requires_grad = tensor.is_floating_point()};
  };
  const std::vector<PlainTensor> tensors = {plain("a", a, "float32"), plain("b", b, "int64"),
                                            plain("tied", a, "float32")};
  write_new_checkpoint(folder / "new.pt", tensors);
  const auto checkpoint = open_checkpoint(folder / "new.pt");
  ASSERT_EQ(checkpoint->tensors().size(), 3U);
  EXPECT_TRUE(checkpoint->globals().refused.empty());
  EXPECT_EQ(checkpoint->tensors()[TensorId(0)].storage, checkpoint->tensors()[TensorId(2)].storage);
  EXPECT_EQ(checkpoint->tensors()[TensorId(1)].dims, (Shape{4}));
  const StoredValues values = checkpoint->values(TensorId(0));
  EXPECT_TRUE(std::ranges::equal(values.bytes(), tensors[0].elements));
}

}  // namespace
}  // namespace parsimony::test
