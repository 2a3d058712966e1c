package spill

import (
	"fmt"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec says how buffers are compressed on disk.
type Codec uint8

// The codecs. The numbers are part of the file format.
const (
	// CodecLZ4 is LZ4 blocks, the default: reading costs little more than copying.
	CodecLZ4 Codec = iota
	// CodecNone stores buffers as they are.
	CodecNone
	// CodecZstd is Zstandard frames: smaller, several times slower.
	CodecZstd
)

// String gives the name used in configuration and table properties.
func (c Codec) String() string {
	switch c {
	case CodecLZ4:
		return "lz4"
	case CodecNone:
		return "none"
	case CodecZstd:
		return "zstd"
	default:
		return fmt.Sprintf("codec(%d)", uint8(c))
	}
}

// ParseCodec is the inverse of String, in any case of letters.
func ParseCodec(text string) (Codec, error) {
	for c := CodecLZ4; c <= CodecZstd; c++ {
		if strings.EqualFold(text, c.String()) {
			return c, nil
		}
	}
	return 0, fmt.Errorf("codec %q is unknown; want lz4, none or zstd", text)
}

const (
	// compressBytesMin: shorter buffers are stored as they are.
	compressBytesMin = 64
	// savesShare: a compressed buffer is kept only if it is at least a sixteenth shorter; else reading it would cost more than it saves.
	savesShare = 16
	// zstdWindow bounds the memory of an encoder and a decoder; pages are rarely larger.
	zstdWindow = 1 << 20
)

// lz4Compressors holds hash tables for reuse: they are larger than a typical page.
var lz4Compressors = sync.Pool{New: func() any { return new(lz4.Compressor) }}

// zstdEncoder and zstdDecoder are safe for concurrent use and hold no goroutines when used for whole buffers.
var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(zstdWindow),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
})

var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
})

// compress puts src into dst, which is at least as long, and gives the stored length and the codec that was used: CodecNone
// when compression does not save enough.
func compress(codec Codec, src, dst []byte) (int, Codec, error) {
	room := len(src) - len(src)/savesShare
	if codec != CodecNone && len(src) >= compressBytesMin {
		n, err := compressWith(codec, src, dst[:room:room])
		if err != nil {
			return 0, 0, err
		}
		if n > 0 {
			return n, codec, nil
		}
	}
	return copy(dst, src), CodecNone, nil
}

// compressWith gives 0 when the result does not fit in dst.
func compressWith(codec Codec, src, dst []byte) (int, error) {
	switch codec {
	case CodecLZ4:
		c := lz4Compressors.Get().(*lz4.Compressor)
		defer lz4Compressors.Put(c)
		n, err := c.CompressBlock(src, dst)
		if err != nil {
			// The only error is that dst is too short for the result.
			return 0, nil
		}
		return n, nil
	case CodecZstd:
		enc, err := zstdEncoder()
		if err != nil {
			return 0, fmt.Errorf("zstd encoder: %w", err)
		}
		out := enc.EncodeAll(src, dst[:0])
		if len(out) > len(dst) {
			return 0, nil
		}
		return len(out), nil
	default:
		return 0, fmt.Errorf("codec %s can't compress", codec)
	}
}

// decompress fills dst exactly from stored bytes. It never writes beyond dst, whatever the bytes are.
func decompress(codec Codec, src, dst []byte) error {
	n := 0
	var err error
	switch codec {
	case CodecNone:
		if len(src) != len(dst) {
			return fmt.Errorf("%d bytes stored as they are for %d", len(src), len(dst))
		}
		n = copy(dst, src)
	case CodecLZ4:
		n, err = lz4.UncompressBlock(src, dst)
	case CodecZstd:
		var dec *zstd.Decoder
		if dec, err = zstdDecoder(); err == nil {
			var out []byte
			out, err = dec.DecodeAll(src, dst[:0:len(dst)])
			n = len(out)
		}
	default:
		err = fmt.Errorf("unknown codec %d", codec)
	}
	if err != nil {
		return fmt.Errorf("decompress %s: %w", codec, err)
	}
	if n != len(dst) {
		return fmt.Errorf("decompress %s: %d bytes, want %d", codec, n, len(dst))
	}
	return nil
}
