package main

import (
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What follows is the form of cosign's SIGNATURE_SPEC.md: beside an image, a tag made of the
// image's digest names a second image, whose layer is what was signed.
const (
	signedPayload       = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	signedType          = "cosign container image signature"
)

// claim is what a key signs of an image. The names of the fields are those of "simple
// signing", which podman and CRI-O read too.
type claim struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// signatureOf is the image that holds the signature of what has this tag and digest. It
// depends on nothing else, so a release made twice has the same signatures.
func signatureOf(key *ecdsa.PrivateKey, tag name.Tag, digest v1.Hash) (v1.Image, error) {
	var c claim
	c.Critical.Identity.Reference = tag.Name()
	c.Critical.Image.Digest = digest.String()
	c.Critical.Type = signedType
	payload, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	signature, err := sign(key, payload)
	if err != nil {
		return nil, err
	}
	return mutate.Append(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{
			Layer:       static.NewLayer(payload, signedPayload),
			Annotations: map[string]string{signatureAnnotation: strings.TrimSpace(string(signature))},
		})
}

// signatureTag is where verifiers look for the signatures of a digest.
func signatureTag(repository name.Repository, digest v1.Hash) name.Tag {
	return repository.Tag(fmt.Sprintf("%s-%s.sig", digest.Algorithm, digest.Hex))
}
