// The example networks have the parameters that their papers and the usual libraries give them.
#include <gtest/gtest.h>

#include "examples/models/cifar_cnn.h"
#include "examples/models/mobilenet_v2.h"
#include "examples/models/resnet.h"
#include "examples/models/unet.h"
#include "examples/models/vit.h"
#include "tests/agreement/networks.h"

namespace parsimony::test {
namespace {

TEST(ExampleModels, HaveTheKnownParameters) {
  EXPECT_EQ(count_parameters(*examples::CifarCnn()), 2'122'186);
  EXPECT_EQ(count_parameters(*examples::ResNet(examples::resnet18())), 11'689'512);
  EXPECT_EQ(count_parameters(*examples::ResNet(examples::resnet50())), 25'557'032);
  EXPECT_EQ(count_parameters(*examples::MobileNetV2()), 3'504'872);
  EXPECT_EQ(count_parameters(*examples::UNet()), 31'037'698);
  EXPECT_EQ(count_parameters(*examples::ViT()), 5'717'416);
}

}  // namespace
}  // namespace parsimony::test
