"""The search for sums of trees and networks: best first over boxes of finite features."""
