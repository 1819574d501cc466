// Names of the Hugging Face hub find what was downloaded.
#include "convert/open/hub_cache.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "fovea/host/opened.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// An environment variable for as long as this lives.
class Variable {
public:
    Variable(const char* name, const fs::path& value) : name_(name) {
        if (const char* had = std::getenv(name)) before_ = had;
        value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

private:
    const char* name_;
    std::optional<std::string> before_;
};

/// A model as huggingface_hub keeps it: a revision's folder of links to files that are named by their contents.
void download(const fs::path& hub, const char* name) {
    const fs::path model = hub / ("models--" + std::string(name)), snapshot = model / "snapshots" / "0123abc";
    fs::create_directories(snapshot);
    fs::create_directories(model / "blobs");
    fs::create_directories(model / "refs");
    write_text(model / "refs" / "main", "0123abc");
    for (const auto& entry : fs::directory_iterator(golden_models() / "llama_tied")) {
        const fs::path file = entry.path().filename();
        fs::copy_file(entry.path(), model / "blobs" / file);
        fs::create_symlink(fs::path("../../blobs") / file, snapshot / file);
    }
}

}  // namespace

TEST_CASE("hub cache: a name is found where its variables say, the first that is set") {
    const TemporaryFolder folder;
    const Variable of_hub("HF_HUB_CACHE", {}), older("HUGGINGFACE_HUB_CACHE", {}), of_all("HF_HOME", {}),
        xdg("XDG_CACHE_HOME", {}), home("HOME", folder / "home");
    CHECK(find_source("some/model") == "some/model");
    const std::pair<const char*, const char*> places[] = {{"HOME", "home/.cache/huggingface/hub"},
                                                          {"XDG_CACHE_HOME", "xdg/huggingface/hub"},
                                                          {"HF_HOME", "all/hub"},
                                                          {"HUGGINGFACE_HUB_CACHE", "older"},
                                                          {"HF_HUB_CACHE", "hub"}};
    for (const auto& row : places) {
        const char *variable = row.first, *place = row.second;
        CAPTURE(variable);
        const std::string first = std::string(place).substr(0, std::string(place).find('/'));
        setenv(variable, (folder.path() / first).c_str(), 1);
        CHECK(find_source("some/model") == "some/model");
        download(folder.path() / place, "some--model");
        CHECK(find_source("some/model") == folder.path() / place / "models--some--model/snapshots/0123abc");
    }
    for (const char* path : {"", "some", "./some/model", "/some/model", "some/model/x", "other/model", "some/mod"})
        CHECK(find_source(path) == path);
    write_text(folder.path() / "hub/models--some--model/refs/main", "../../elsewhere");
    CHECK(find_source("some/model") == "some/model");
}

TEST_CASE("hub cache: a downloaded model is opened and converted by its name") {
    const TemporaryFolder folder;
    const Variable of_hub("HF_HUB_CACHE", folder / "hub"), xdg("XDG_CACHE_HOME", folder / "cache");
    download(folder / "hub", "some--model");
    CHECK(host::open("some/model").model.info().architecture == "llama");
    ConvertOptions options;
    options.source = "some/model";
    options.output = folder / "model.fovea";
    convert_source(options);
    const Converted converted(options.output);
    CHECK(contains(refusal_of([] { (void)host::open("other/model"); }), "downloaded first: hf download other/model"));
}
