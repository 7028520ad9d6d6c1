package main

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
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

// write writes the archive to a file and returns the image's ID: the digest of
// its configuration, which names its layer. The layer is not compressed, since
// who imports it unpacks it at once.
func (im image) write(path, arch string) (id string, err error) {
	ref, err := name.NewTag(im.reference)
	if err != nil {
		return "", err
	}
	if im.config.WorkingDir != "" {
		im.files.add(im.config.WorkingDir, entry{mode: fs.ModeDir | 0o755})
	}
	files, err := im.files.archive()
	if err != nil {
		return "", err
	}
	built, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: time.Unix(0, 0).UTC()}, Config: im.config,
	})
	if err != nil {
		return "", err
	}
	built, err = mutate.AppendLayers(built, static.NewLayer(files, types.DockerUncompressedLayer))
	if err != nil {
		return "", err
	}
	hash, err := built.ConfigName()
	if err != nil {
		return "", err
	}
	// Whoever reads the archive while it is written again sees an old or a
	// new one, never a half.
	part := path + ".part"
	if err := tarball.WriteToFile(part, ref, built); err != nil {
		_ = os.Remove(part)
		return "", fmt.Errorf("writing the archive: %w", err)
	}
	return hash.String(), os.Rename(part, path)
}
