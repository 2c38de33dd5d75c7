#include "config/recipe.h"

#include <gtest/gtest.h>

#include "config/source.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

// Tests run in the build folder, whose source tree has the recipes.
TEST(Recipes, AreFoundFromWhereTheProgramIs) {
  ASSERT_TRUE(recipe_folder().has_value());
  EXPECT_TRUE(fs::equivalent(*recipe_folder(), fs::path(LOCKSTEP_SOURCE) / "configs"));
  for (const char* name : {"configs/translation/quickstart.toml", "translation/quickstart.toml",
                           "translation/quickstart"}) {
    std::optional<fs::path> found = find_recipe(name);
    ASSERT_TRUE(found.has_value()) << name;
    EXPECT_TRUE(
        fs::equivalent(*found, fs::path(LOCKSTEP_SOURCE) / "configs/translation/quickstart.toml"));
  }
  EXPECT_FALSE(find_recipe("translation/slowstart").has_value());
  EXPECT_FALSE(find_recipe("translation").has_value());  // a folder
  EXPECT_FALSE(find_recipe("").has_value());
  EXPECT_FALSE(find_recipe("../configs/translation/quickstart.toml").has_value());
  EXPECT_FALSE(find_recipe("/translation/quickstart.toml").has_value());
}

TEST(Recipes, GiveWayToFilesOfTheirName) {
  TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  fs::create_directories("configs/translation");
  write_file("configs/translation/quickstart.toml", "[run]\nseed = 7\n");
  EXPECT_EQ(find_recipe("translation/quickstart"), "configs/translation/quickstart.toml");
  write_file("mine.toml", "");
  EXPECT_EQ(find_recipe("mine.toml"), "mine.toml");
  fs::current_path(before);
}

TEST(Recipes, AreReadAsConfigurations) {
  EXPECT_NO_THROW(ConfigSource::from_file("translation/quickstart"));
  EXPECT_ERROR(ConfigSource::from_file("translation/slowstart"), ConfigError,
               "translation/slowstart: no such configuration file");
}

}  // namespace
}  // namespace lockstep
