# nix build ./packaging/nix, or nix run ./packaging/nix -- run -p "turn on the lights". The sources are the checkout around it.
{
  description = "Fovea, an embeddable CPU inference engine for attention models";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  inputs.fovea = {
    url = "path:../..";
    flake = false;
  };

  outputs = inputs@{ self, nixpkgs, ... }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEach (pkgs: rec {
        fovea = pkgs.stdenv.mkDerivation {
          pname = "fovea";
          version = builtins.elemAt (builtins.match ".*FOVEA_VERSION \"([0-9.]+)\".*" (builtins.readFile "${inputs.fovea}/include/fovea/version.h")) 0;
          src = inputs.fovea;
          nativeBuildInputs = [ pkgs.cmake pkgs.ninja pkgs.pkg-config ];
          buildInputs = [ pkgs.boost pkgs.cli11 pkgs.libedit pkgs.libsndfile pkgs.nlohmann_json pkgs.xsimd ];
          cmakeFlags = [ "-DFOVEA_TESTS=OFF" "-DFOVEA_EXAMPLES=OFF" "-DFOVEA_FETCH=OFF" "-DFOVEA_INSTALL=ON" ];
          meta = {
            description = "An embeddable CPU inference engine for attention models";
            license = pkgs.lib.licenses.asl20;
            mainProgram = "fovea";
            platforms = systems;
          };
        };
        default = fovea;
      });
      apps = forEach (pkgs: {
        default = {
          type = "app";
          program = "${self.packages.${pkgs.system}.fovea}/bin/fovea";
        };
      });
    };
}
