package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes images and chart with the credentials of docker login, if there is a
// registry: images as REGISTRY/NAME, and the chart as REGISTRY/charts/windlass.
func (r *release) push(ctx context.Context) error {
	if r.registry == "" {
		return nil
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	built, err := os.ReadDir(filepath.Join(r.work, "images"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, image := range built {
		if err := r.pushImage(image.Name(), options); err != nil {
			return err
		}
	}
	chart, err := name.NewTag(r.registry + "/charts/windlass:" + r.plain())
	if err != nil {
		return err
	}
	return remote.Write(chart, r.artefact, options...)
}

func (r *release) pushImage(image string, options []remote.Option) error {
	ref, err := name.NewTag(r.registry + "/" + image + ":" + r.plain())
	if err != nil {
		return err
	}
	top, err := layout.ImageIndexFromPath(filepath.Join(r.work, "images", image))
	if err != nil {
		return err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return err
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	return remote.WriteIndex(ref, index, options...)
}
