package buildinfo

import "testing"

func TestAProgramAlwaysHasAVersion(t *testing.T) {
	if Version == "" {
		t.Error("Version is empty")
	}
}
