SUMMARY = "An embeddable CPU inference engine for attention models"
DESCRIPTION = "A library for C and C++ that runs transformers, and a command line"
HOMEPAGE = "https://fovea.invalid"
BUGTRACKER = "https://fovea.invalid/issues"
SECTION = "libs"
CVE_PRODUCT = "fovea"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE;md5=@LICENSEMD@"

DEPENDS = "cli11 nlohmann-json"

SRC_URI = "https://fovea.invalid/releases/fovea-${PV}.tar.gz"
# Once there is a release
SRC_URI[sha256sum] = "0000000000000000000000000000000000000000000000000000000000000000"

inherit cmake

EXTRA_OECMAKE += "\
    -DFOVEA_EXAMPLES=OFF \
    -DFOVEA_FETCH=OFF \
    -DFOVEA_INSTALL=ON \
    -DFOVEA_OPENMP=OFF \
    -DFOVEA_SERVE=OFF \
    -DFOVEA_TESTS=OFF \
"
# Others of x86 want xsimd's headers.
EXTRA_OECMAKE:append:x86 = " -DFOVEA_ISAS=scalar"
EXTRA_OECMAKE:append:x86-64 = " -DFOVEA_ISAS=scalar"

BBCLASSEXTEND = "native nativesdk"
