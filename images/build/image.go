package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image is what an archive is made of.
type image struct {
	reference string
	config    v1.Config
	files     tree
}

// writeArchive builds an image and writes the archive to a file. What it returns ends with
// the image's ID, the digest of its configuration, which names its layer, and the path. The
// layer is not compressed, since who imports it unpacks it at once.
func writeArchive(ctx context.Context, o options, of string) (said string, err error) {
	im, err := recipes[of](ctx, o)
	if err != nil {
		return "", err
	}
	ref, err := name.NewTag(im.reference)
	if err != nil {
		return "", err
	}
	files, err := im.layer()
	if err != nil {
		return "", err
	}
	built, err := im.with(o.arch, static.NewLayer(files, types.DockerUncompressedLayer))
	if err != nil {
		return "", err
	}
	hash, err := built.ConfigName()
	if err != nil {
		return "", err
	}
	path := filepath.Join(o.out, of+".tar")
	// A reader of the archive sees, while it is written again, an old or a
	// new one, never a half.
	part := path + ".part"
	if err := tarball.WriteToFile(part, ref, built); err != nil {
		_ = os.Remove(part)
		return "", fmt.Errorf("writing the archive: %w", err)
	}
	return fmt.Sprint(im.reference, " ", hash, " ", path), os.Rename(part, path)
}

// writeLayout builds an image for each architecture and writes them as an OCI image layout,
// with one index. What it returns ends with the index's digest and the path.
func writeLayout(ctx context.Context, o options, of string) (said string, err error) {
	var index v1.ImageIndex = empty.Index
	reference := ""
	for _, o.arch = range o.archs {
		im, err := recipes[of](ctx, o)
		if err != nil {
			return "", err
		}
		built, err := im.oci(o.arch)
		if err != nil {
			return "", err
		}
		reference = im.reference
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: built, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: o.arch}},
		})
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	path := filepath.Join(o.out, of)
	if err := os.RemoveAll(path); err != nil {
		return "", err
	}
	dir, err := layout.Write(path, empty.Index)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(reference, " ", digest, " ", path),
		dir.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.tag}))
}

// oci is the image in the media types of OCI, with a compressed layer.
func (im image) oci(arch string) (v1.Image, error) {
	files, err := im.layer()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	built, err := im.with(arch, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigMediaType(mutate.MediaType(built, types.OCIManifestSchema1), types.OCIConfigJSON), nil
}

// layer is the file system as a tar archive.
func (im image) layer() ([]byte, error) {
	if im.config.WorkingDir != "" {
		im.files.add(im.config.WorkingDir, entry{mode: fs.ModeDir | 0o755})
	}
	return im.files.archive()
}

// with is the image with a layer.
func (im image) with(arch string, layer v1.Layer) (v1.Image, error) {
	built, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: time.Unix(0, 0).UTC()}, Config: im.config,
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(built, layer)
}
