package modelapitest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif" // the formats that servers take
	_ "image/jpeg"
	_ "image/png"
	"slices"
	"strings"

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
	picture, format, err := image.Decode(bytes.NewReader(i.Data))
	switch {
	case err != nil:
		return fmt.Sprintf("could not process the image: %v", err)
	case !slices.Contains(formats, format), i.MIME != "image/"+format:
		return fmt.Sprintf("the image is %s, and was sent as %q", format, i.MIME)
	case len(i.Data) > most:
		return fmt.Sprintf("the image exceeds %d bytes", most)
	case max(picture.Bounds().Dx(), picture.Bounds().Dy()) > 8000:
		return "the image is longer than 8000 pixels"
	}
	return ""
}
