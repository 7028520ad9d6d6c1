package main

import (
	"context"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// content is an image, an index of images or a chart, as a registry keeps it.
type content interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// push pushes images and chart with the credentials of docker login, if there is a
// registry: images as REGISTRY/NAME, and the chart as REGISTRY/charts/windlass. The chart
// comes last, because it names the images.
func (r *release) push(ctx context.Context) error {
	if r.registry == "" {
		return nil
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for _, name := range r.imageNames {
		index, err := indexIn(filepath.Join(r.work, "images", name))
		if err != nil {
			return err
		}
		if err := r.pushSigned(name, index, options); err != nil {
			return err
		}
	}
	return r.pushSigned("charts/windlass", r.artefact, options)
}

// pushSigned pushes content and its signature, and then sets the tag: a client that pulls
// by the tag always finds the signature.
func (r *release) pushSigned(repository string, what content, options []remote.Option) error {
	tag, err := name.NewTag(r.registry + "/" + repository + ":" + r.plain())
	if err != nil {
		return err
	}
	digest, err := what.Digest()
	if err != nil {
		return err
	}
	if err := remote.Push(tag.Digest(digest.String()), what, options...); err != nil {
		return err
	}
	signature, err := signatureOf(r.key, tag, digest)
	if err != nil {
		return err
	}
	if err := remote.Push(signatureTag(tag.Repository, digest), signature, options...); err != nil {
		return err
	}
	return remote.Push(tag, what, options...)
}

// indexIn is the only index of an OCI layout.
func indexIn(folder string) (v1.ImageIndex, error) {
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	return top.ImageIndex(manifest.Manifests[0].Digest)
}
