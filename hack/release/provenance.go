package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// certificates are those that images/build puts into images: the only content that is
// neither in the commit nor in a module.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

// statement is an in-toto statement with SLSA's provenance, version 1:
// https://slsa.dev/spec/v1.0/provenance. What is optional there and differs from build to
// build is left out.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []subject  `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type provenance struct {
	BuildDefinition definition `json:"buildDefinition"`
	RunDetails      runDetails `json:"runDetails"`
}

type definition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	ResolvedDependencies []dependency      `json:"resolvedDependencies"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

type runDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// provenance writes of what all released so far was made.
func (r *release) provenance(ctx context.Context) error {
	goVersion, err := r.command(ctx, r.source, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	needed := []dependency{
		{URI: "git+" + home, Digest: map[string]string{"gitCommit": r.commit}},
		{URI: "https://go.dev/dl/#" + goVersion},
	}
	if len(r.archs) > 0 {
		bundle, err := os.ReadFile(certificates)
		if err != nil {
			return fmt.Errorf("the certificates of the public authorities: %w", err)
		}
		needed = append(needed, dependency{URI: "file://" + certificates, Digest: subjectOf("", bundle).Digest})
	}
	platforms := make([]string, 0, len(r.platforms))
	for _, p := range r.platforms {
		platforms = append(platforms, p.os+"/"+p.arch)
	}
	said := statement{
		Type: "https://in-toto.io/Statement/v1", Subject: r.subjects, PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: provenance{BuildDefinition: definition{
			BuildType:            home + "/blob/main/docs/releasing.md#build-type",
			ExternalParameters:   map[string]string{"version": r.version, "platforms": strings.Join(platforms, ",")},
			ResolvedDependencies: needed,
		}},
	}
	// Who runs the recipe vouches with the key, and nothing else does.
	said.Predicate.RunDetails.Builder.ID = home + "/blob/main/docs/releasing.md#builder"
	content, err := json.MarshalIndent(said, "", " ")
	return r.write("windlass_"+r.version+".provenance.json", append(content, '\n'), err)
}
