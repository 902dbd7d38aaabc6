package picture

import (
	"bytes"
	"encoding/binary"
)

// jpegInfo is what the segments of a JPEG say besides its size.
type jpegInfo struct {
	orientation int     // of EXIF, 1 to 8; 0: it says none
	baseline    bool    // known not to be progressive
	samples     float64 // of a pixel
}

// memory returns how many bytes decoding takes for a pixel.
func (i jpegInfo) memory() float64 {
	switch {
	case i.samples == 0: // its header is unusual
		return 4 * (1 + 4)
	case i.baseline:
		return i.samples
	}
	return i.samples * (1 + 4) // a decoder holds all coefficients
}

// Markers of JPEG segments.
const (
	markerSOF0  = 0xc0 // the size and the components; 1: with longer tables, 2: progressive
	markerSOF2  = 0xc2
	markerRST0  = 0xd0 // between pixels, to 7
	markerSOI   = 0xd8
	markerEOI   = 0xd9
	markerSOS   = 0xda // the pixels begin
	markerDHP   = 0xde // of other kinds of JPEG, to the next one
	markerAPP0  = 0xe0 // JFIF
	markerAPP1  = 0xe1 // EXIF, among others
	markerAPP14 = 0xee // how the colors are stored
)

// jfif is a JFIF segment that says nothing but that it is one.
const jfif = "\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"

// stripped returns a JPEG with nothing but what is needed to show it: no metadata, comments
// and previews, and nothing behind its end. Nil: it is not understood.
func stripped(file []byte) []byte {
	if !bytes.HasPrefix(file, []byte{0xff, markerSOI}) {
		return nil
	}
	out := append(make([]byte, 0, len(file)), file[:2]...)
	for rest := file[2:]; len(rest) >= 2 && rest[0] == 0xff; {
		marker := rest[1]
		if marker == markerEOI {
			return append(out, rest[:2]...)
		}
		if len(rest) < 4 {
			return nil
		}
		n := int(binary.BigEndian.Uint16(rest[2:])) + 2
		if n < 4 || n > len(rest) {
			return nil
		}
		segment := rest[4:n]
		switch {
		case marker == markerAPP0 && bytes.HasPrefix(segment, []byte("JFIF\x00")):
			out = append(out, jfif...)
		case marker == markerAPP14 && bytes.HasPrefix(segment, []byte("Adobe")) && len(segment) == 12,
			marker >= markerSOF0 && marker < markerRST0, marker >= markerSOS && marker < markerDHP:
			out = append(out, rest[:n]...)
		case marker >= markerAPP0 && marker <= markerAPP0+15, marker == 0xfe:
		default:
			return nil
		}
		rest = rest[n:]
		if marker == markerSOS {
			end := scan(rest)
			out, rest = append(out, rest[:end]...), rest[end:]
		}
	}
	return nil
}

// scan returns where the coded pixels at the beginning of data end.
func scan(data []byte) int {
	for i := 0; i+1 < len(data); i++ {
		if next := data[i+1]; data[i] == 0xff && next != 0 && (next < markerRST0 || next >= markerSOI) {
			return i
		}
	}
	return len(data)
}

// readJPEG reads the segments before the pixels. It ends at what it does not understand.
func readJPEG(file []byte) (info jpegInfo) {
	for rest := file[min(2, len(file)):]; len(rest) >= 4 && rest[0] == 0xff; {
		marker := rest[1]
		n := int(binary.BigEndian.Uint16(rest[2:])) + 2
		if marker < markerSOF0 || marker >= 0xd0 && marker <= markerSOS || n < 4 || n > len(rest) {
			break
		}
		switch segment := rest[4:n]; {
		case marker <= markerSOF2:
			info.baseline, info.samples = marker < markerSOF2, samples(segment)
		case marker == markerAPP1 && info.orientation == 0:
			info.orientation = orientation(segment)
		}
		rest = rest[n:]
	}
	return info
}

// samples returns how many samples a pixel has, from a SOF segment: chroma usually has
// fewer than luma.
func samples(segment []byte) float64 {
	if len(segment) < 6 {
		return 0
	}
	sum, horizontal, vertical := 0, 1, 1
	for components := segment[6:]; len(components) >= 3; components = components[3:] {
		h, v := int(components[1]>>4), int(components[1]&15)
		sum, horizontal, vertical = sum+h*v, max(horizontal, h), max(vertical, v)
	}
	return float64(sum) / float64(horizontal*vertical)
}

// orientation returns the orientation in an EXIF segment; 0: it says none.
func orientation(segment []byte) int {
	tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00"))
	if !ok || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if tiff[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 0
	}
	fields := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		const size, tagOrientation = 12, 0x0112
		if len(fields) < size {
			return 0
		}
		if order.Uint16(fields) == tagOrientation {
			if o := int(order.Uint16(fields[8:])); o >= 1 && o <= 8 {
				return o
			}
			return 0
		}
		fields = fields[size:]
	}
	return 0
}
