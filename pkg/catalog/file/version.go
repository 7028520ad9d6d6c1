package file

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// Version names one state of one function, as far as Apply can change it.
type Version string

// VersionOf is the version of a function that Get has returned.
func VersionOf(f *v1alpha1.Function) Version {
	// The generation rises with all but these. JSON has the keys of maps in order, and no map of
	// strings that it cannot hold.
	text, _ := json.Marshal(struct {
		Labels      map[string]string `json:"l,omitempty"`
		Annotations map[string]string `json:"a,omitempty"`
	}{f.Labels, f.Annotations})
	digest := sha256.Sum256(text)
	return Version(fmt.Sprintf("%s.%d.%x", f.UID, f.Generation, digest[:8]))
}
