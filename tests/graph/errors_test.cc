#include "parsimony/graph/errors.h"

#include <gtest/gtest.h>

namespace parsimony {
namespace {

TEST(Errors, SayWhereAndWhatWasExpected) {
  EXPECT_STREQ(errors::shape_mismatch("Conv_3", "channels", "64", "32").what(),
               "node \"Conv_3\": wrong dims: channels: expected 64, found 32");
  EXPECT_STREQ(errors::bad_attribute("Slice_1", "steps", "a step may not be 0").what(),
               "node \"Slice_1\": attribute \"steps\": a step may not be 0");
}

}  // namespace
}  // namespace parsimony
