package modelapitest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif" // the formats that servers take
	_ "image/jpeg"
	_ "image/png"
	"slices"
	"strings"
	"sync"

	_ "golang.org/x/image/webp" // the formats that servers take
)

// Image is a picture in a request.
type Image struct {
	MIME string
	Data []byte
}

// DataURL returns the picture in a data URL; another URL has none.
func DataURL(url string) (i Image) {
	rest, isData := strings.CutPrefix(url, "data:")
	mime, text, isBase64 := strings.Cut(rest, ";base64,")
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && isData && isBase64 {
		return Image{mime, data}
	}
	return Image{}
}

// Wrong returns what servers say of a picture that they refuse: one of another format, with
// another type than it claims, broken, or too large. Otherwise it is empty.
func (i Image) Wrong(formats []string, most int) string {
	switch p := look(i.Data); {
	case p.err != nil:
		return fmt.Sprintf("could not process the image: %v", p.err)
	case !slices.Contains(formats, p.format), i.MIME != "image/"+p.format:
		return fmt.Sprintf("the image is %s, and was sent as %q", p.format, i.MIME)
	case len(i.Data) > most:
		return fmt.Sprintf("the image exceeds %d bytes", most)
	case max(p.size.X, p.size.Y) > 8000:
		return "the image is longer than 8000 pixels"
	}
	return ""
}

// decoded is what decoding a picture tells.
type decoded struct {
	format string
	size   image.Point
	err    error
}

// looked are the pictures by the hash of their bytes: each is decoded once, so that the
// time of a request is the client's.
var looked sync.Map

func look(data []byte) decoded {
	hash := sha256.Sum256(data)
	if known, ok := looked.Load(hash); ok {
		return known.(decoded)
	}
	var d decoded
	var picture image.Image
	if picture, d.format, d.err = image.Decode(bytes.NewReader(data)); d.err == nil {
		d.size = picture.Bounds().Size()
	}
	looked.Store(hash, d)
	return d
}
