# brew install --build-from-source packaging/homebrew/fovea.rb, once a release's address and hash stand below.
class Fovea < Formula
  desc "Embeddable CPU inference engine for attention models"
  homepage "https://fovea.invalid"
  url "https://fovea.invalid/releases/fovea-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "boost" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "xsimd" => :build
  depends_on "libsndfile"
  uses_from_macos "libedit"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DFOVEA_TESTS=OFF", "-DFOVEA_EXAMPLES=OFF",
           "-DFOVEA_FETCH=OFF", "-DFOVEA_INSTALL=ON", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match "\"device\":\"lights\"", shell_output("#{bin}/fovea run -p 'turn on the lights in the kitchen'")
  end
end
