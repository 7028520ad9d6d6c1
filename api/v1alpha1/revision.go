package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// AnnotationCodeStamp is a digest of the files that a Function's code.path names, as
// they were when it was deployed. The store of a local Windlass sets it, because the
// spec does not have the code.
const AnnotationCodeStamp = "local.windlass.dev/code"

// Revision identifies what an instance of the function is: instances of another
// revision are replaced. The code belongs to it, also where the spec only names a
// path. What only says how many there are, and how calls are treated, does not
// count: it may change while they run.
func (f *Function) Revision() string {
	spec := f.Spec.DeepCopy()
	spec.Scaling.Min, spec.Scaling.Max, spec.Scaling.KeepAlive, spec.Scaling.Schedule = 0, nil, "", nil
	spec.Limits = Limits{}
	spec.Decider, spec.Idempotent, spec.CancelOnDisconnect = "", false, false
	text, err := json.Marshal(spec)
	if err != nil {
		// A spec that was read from JSON or YAML can be written.
		panic("v1alpha1: a Function that cannot be encoded: " + err.Error())
	}
	// Without files the digest is that of the spec alone, as pods bear it already.
	text = append(text, f.Annotations[AnnotationCodeStamp]...)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}
