// Package published installs programs for tests as their makers publish them on npm or PyPI.
// They are installed below the user's cache folder and kept there. Tests that use it have the
// build tag clients, which make test-clients gives.
package published
