################################################################################
#
# fovea
#
################################################################################

FOVEA_VERSION = @VERSION@
FOVEA_SITE = https://fovea.invalid/releases
FOVEA_LICENSE = Apache-2.0
FOVEA_LICENSE_FILES = LICENSE
FOVEA_INSTALL_STAGING = YES
FOVEA_DEPENDENCIES = cli11 json-for-modern-cpp
# Scalar kernels on x86, whose others want xsimd's headers.
FOVEA_CONF_OPTS = \
	-DFOVEA_EXAMPLES=OFF \
	-DFOVEA_FETCH=OFF \
	-DFOVEA_INSTALL=ON \
	-DFOVEA_OPENMP=OFF \
	-DFOVEA_SERVE=OFF \
	-DFOVEA_TESTS=OFF

ifeq ($(BR2_i386)$(BR2_x86_64),y)
FOVEA_CONF_OPTS += -DFOVEA_ISAS=scalar
endif

$(eval $(cmake-package))
