// Package v1alpha1 holds the windlass.dev/v1alpha1 API: the Function that
// people write, and the status that Windlass writes back.
//
// The same types serve a manifest read from a file in local mode and a custom
// resource in a cluster. Default fills what was left out, Validate says
// everything that is wrong with a Function in the user's words, and Decode
// turns YAML or JSON into Functions with errors that name the field and the
// remedy. Nothing else in the project decides what a valid Function is.
//
// +kubebuilder:object:generate=true
// +groupName=windlass.dev
package v1alpha1
