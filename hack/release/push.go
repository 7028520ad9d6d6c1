package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
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
	var all []pushed
	add := func(repository string, what content) error {
		tag, err := name.NewTag(r.registry + "/" + repository + ":" + r.plain())
		if err != nil {
			return err
		}
		digest, err := what.Digest()
		all = append(all, pushed{tag, digest, what})
		return err
	}
	for _, name := range r.imageNames {
		index, err := indexIn(filepath.Join(r.work, "images", name))
		if err != nil {
			return err
		}
		if err := add(name, index); err != nil {
			return err
		}
	}
	if err := add("charts/windlass", r.artefact); err != nil {
		return err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := refuseMoves(all, options); err != nil {
		return err
	}
	for _, p := range all {
		if err := p.pushSigned(r.key, options); err != nil {
			return fmt.Errorf("%s: %w", p.tag, err)
		}
	}
	return nil
}

// pushed is what a tag shall name.
type pushed struct {
	tag     name.Tag
	digest  v1.Hash
	content content
}

// refuseMoves is an error if a tag names something else already: clusters and caches have what it
// named, and its signature stays valid. A tag that names the same is from a push that broke off.
func refuseMoves(all []pushed, options []remote.Option) error {
	for _, p := range all {
		found, err := remote.Head(p.tag, options...)
		var answer *transport.Error
		switch {
		case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		case err != nil:
			return fmt.Errorf("what %s names is unknown, and nothing was pushed: %w", p.tag, err)
		case found.Digest != p.digest:
			return fmt.Errorf("%s names %s, and this release would move it to %s: nothing was pushed; release another version", p.tag, found.Digest, p.digest)
		}
	}
	return nil
}

// pushSigned pushes content and its signature, and then sets the tag: a client that pulls
// by the tag always finds the signature.
func (p pushed) pushSigned(key *ecdsa.PrivateKey, options []remote.Option) error {
	if err := remote.Push(p.tag.Digest(p.digest.String()), p.content, options...); err != nil {
		return err
	}
	signature, err := signatureOf(key, p.tag, p.digest)
	if err != nil {
		return err
	}
	if err := remote.Push(signatureTag(p.tag.Repository, p.digest), signature, options...); err != nil {
		return err
	}
	return remote.Push(p.tag, p.content, options...)
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
